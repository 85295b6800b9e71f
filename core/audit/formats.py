"""An audit's checks as a build server reads them: JUnit and SARIF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core import __version__
from core.audit.audit import printable
from core.audit.gate import Check, Outcome
from core.errors import MissingDependencyError, install


def junit(source: str, checks: Sequence[Check]) -> str:
    """Return the checks as JUnit XML: a test case each, an error where it was not measured.

    Raises
    ------
    MissingDependencyError
        junitparser is not installed.
    """
    parser = _library("junitparser")
    suite = parser.TestSuite("Leakscope audit")
    for check in checks:
        case = parser.TestCase(check.name, classname=printable(source))
        message = printable(check.message)
        if check.outcome is Outcome.FAILED:
            case.result = [parser.Failure(message)]
        elif check.outcome is Outcome.NOT_MEASURED:
            case.result = [parser.Error(message)]
        else:
            case.system_out = message
        suite.add_testcase(case)
    found = parser.JUnitXml()
    found.add_testsuite(suite)
    written: bytes = found.tostring()
    return written.decode("utf-8")


def sarif(source: str, checks: Sequence[Check]) -> str:
    """Return the checks as SARIF 2.1.0: a result each, of the kind pass, fail or open.

    Raises
    ------
    MissingDependencyError
        sarif-pydantic is not installed.
    """
    s = _library("sarif_pydantic")
    rules = [
        s.ReportingDescriptor(id=name, short_description=s.Message(text=_RULES[name]))
        for name in dict.fromkeys(check.name for check in checks)
    ]
    results = [
        s.Result(
            rule_id=check.name,
            kind=_KINDS[check.outcome],
            level=s.Level.ERROR if check.outcome is Outcome.FAILED else s.Level.NONE,
            message=s.Message(text=check.message),
            locations=[s.Location(logical_locations=[s.LogicalLocation(name=source)])],
        )
        for check in checks
    ]
    driver = s.ToolDriver(name="Leakscope", version=__version__, rules=rules)
    log = s.Sarif(version="2.1.0", runs=[s.Run(tool=s.Tool(driver=driver), results=results)])
    written: str = log.model_dump_json(by_alias=True, exclude_none=True, indent=1)
    return written


_KINDS = {Outcome.PASSED: "pass", Outcome.FAILED: "fail", Outcome.NOT_MEASURED: "open"}

_RULES = {
    "max-f1": "F1 of the words that an attack recovers from the vectors",
    "baseline": "F1 compared with an earlier audit",
    "max-recovered-names": "Share of names that an attack recovers from the vectors",
    "max-recovered-numbers": "Share of numbers that an attack recovers from the vectors",
}

_PACKAGES = {"junitparser": "junitparser", "sarif_pydantic": "sarif-pydantic"}


def check_libraries(*modules: str) -> None:
    """Raise MissingDependencyError unless the libraries are there."""
    for module in modules:
        _library(module)


def _library(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"The file is written by {module}: `{install(_PACKAGES[module])}`."
        ) from error
