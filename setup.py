"""Maps the checkout's folders below `leakscope` in the wheel; all else is in pyproject.toml."""

from setuptools import find_namespace_packages, setup

FOLDERS = ("core", "dashboard", "pages", "assets", "results")
found = find_namespace_packages(
    include=[name for folder in FOLDERS for name in (folder, f"{folder}.*")]
)

setup(
    package_dir={f"leakscope.{folder}": folder for folder in FOLDERS},
    packages=["leakscope", *(f"leakscope.{name}" for name in found)],
)
