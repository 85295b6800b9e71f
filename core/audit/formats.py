"""Export an audit's checks for build servers: JUnit and SARIF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from leakscope.core import __version__
from leakscope.core.audit.audit import printable
from leakscope.core.audit.gate import Check, Outcome
from leakscope.core.errors import MissingDependencyError, install


def junit(source: str, checks: Sequence[Check]) -> str:
    """Format checks as JUnit XML text: one test case each, an error if it was not measured.

    Raises
    ------
    MissingDependencyError
        junitparser is not installed.
    """
    parser = _import_library("junitparser")
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
    """Format checks as SARIF 2.1.0 JSON text: one result each, of kind pass, fail or open.

    Raises
    ------
    MissingDependencyError
        sarif-pydantic is not installed.
    """
    s = _import_library("sarif_pydantic")
    # GitHub refuses a file with a result that has no physical location.
    location = s.Location(
        logical_locations=[s.LogicalLocation(name=source)],
        physical_location=s.PhysicalLocation(
            artifact_location=s.ArtifactLocation(uri=quote(source)), region=s.Region(start_line=1)
        ),
    )
    rules = [
        s.ReportingDescriptor(id=name, short_description=s.Message(text=_describe_threshold(name)))
        for name in dict.fromkeys(check.name for check in checks)
    ]
    results = [
        s.Result(
            rule_id=check.name,
            kind=_KINDS[check.outcome],
            level=s.Level.ERROR if check.outcome is Outcome.FAILED else s.Level.NONE,
            message=s.Message(text=check.message),
            locations=[location],
        )
        for check in checks
    ]
    driver = s.ToolDriver(name="Leakscope", version=__version__, rules=rules)
    log = s.Sarif(version="2.1.0", runs=[s.Run(tool=s.Tool(driver=driver), results=results)])
    written: str = log.model_dump_json(by_alias=True, exclude_none=True, indent=1)
    return written


_KINDS = {Outcome.PASSED: "pass", Outcome.FAILED: "fail", Outcome.NOT_MEASURED: "open"}


def _describe_threshold(name: str) -> str:
    """Return what a check limits, by the check's name, as a noun phrase."""
    kind = name.removeprefix("max-confirmable-")
    if kind != name:
        return f"Share of {kind.replace('_', ' ')} that an attacker recovers or confirms"
    return _RULES[name]


_RULES = {
    "max-f1": "F1 of the words that an attacker recovers from the vectors",
    "baseline": "F1 compared with an earlier audit",
    "max-recovered-names": "Share of names that an attacker recovers from the vectors",
    "max-recovered-numbers": "Share of numbers that an attacker recovers from the vectors",
}

_PACKAGES = {"junitparser": "junitparser", "sarif_pydantic": "sarif-pydantic"}


def check_libraries(*modules: str) -> None:
    """Raise MissingDependencyError unless the named export modules can be imported."""
    for module in modules:
        _import_library(module)


def _import_library(module: str) -> Any:
    """Import an export library; raise MissingDependencyError if it is not installed."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"Writing this file needs {module}: `{install(_PACKAGES[module])}`."
        ) from error
