"""Every public name is documented, with its parameters and an example that runs, and typed."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

import badacost

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(badacost.__file__).parent


def names_in_packages() -> set[str]:
    """Return what the modules with a list ``__all__`` offer."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if re.search(r"^__all__\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            module = path.relative_to(PACKAGE.parent).with_suffix("").parts
            module_name = ".".join(module[:-1] if module[-1] == "__init__" else module)
            names = resolve_name(f"{module_name}:__all__")
            found |= {f"{module_name}.{name}" for name in names}
    return found


def names_in_reference(folder: Path) -> set[str]:
    """Return the entries of the summaries in the pages of a folder."""
    found = set()
    for page in folder.glob("*.rst"):
        module, is_summary = "", False
        for line in page.read_text(encoding="utf-8").splitlines():
            directive = re.match(r"\.\. (\w+)::\s*(\S*)", line)
            if directive:
                is_summary = directive[1] == "autosummary"
                module = directive[2] if directive[1] == "currentmodule" else module
            elif is_summary and (entry := re.fullmatch(r"   ([\w.]+)", line)):
                found.add(f"{module}.{entry[1]}")
    return found


def methods_of(kind: type) -> dict[str, Callable[..., Any]]:
    """Return the public methods that a class has from this package, the inherited ones too."""
    return {
        name: method
        for name, method in inspect.getmembers(kind, inspect.isroutine)
        if not name.startswith("_")
        and str(getattr(method, "__module__", "")).startswith("badacost")
    }


def sections_of(docstring: str) -> dict[str, str]:
    """Return the titled sections of a docstring in numpydoc's style."""
    parts = re.split(r"^(\S.*)\n-{3,}$", inspect.cleandoc(docstring), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def names_of(section: str) -> list[str]:
    """Return the names that a section explains, several of them in a line perhaps."""
    heads = re.findall(r"^(\S.*?)(?: ?:.*)?$", section, re.MULTILINE)
    return [name.strip(" *") for head in heads for name in head.split(",") if name]


def parameters_of(thing: Callable[..., Any]) -> set[str]:
    names = set(inspect.signature(thing).parameters) - {"self", "cls"}
    return {name for name in names if not name.startswith("_")}


def explained_by(kind: type) -> set[str]:
    """Return the parameters of the constructor that a class explains.

    Data classes may explain their fields as attributes, and leave those of a parent to it.
    """
    sections = sections_of(kind.__doc__ or "")
    if "Parameters" in sections or not dataclasses.is_dataclass(kind):
        return set(names_of(sections.get("Parameters", "")))
    computed = {field.name for field in dataclasses.fields(kind) if not field.init}
    own = set(names_of(sections.get("Attributes", ""))) - computed
    parents = (parent for parent in kind.__bases__ if dataclasses.is_dataclass(parent))
    return own.union(*(explained_by(parent) for parent in parents))


def complaints_about(name: str, thing: Any) -> list[str]:
    """Return what the documentation of a function or class lacks."""
    docstring = thing.__doc__ or ""
    if not docstring.strip():
        return ["it has no docstring"]
    sections = sections_of(docstring)
    complaints = []
    examples = doctest.DocTestParser().get_examples(sections.get("Examples", ""))
    run = "".join(item.source for item in examples if not item.options.get(doctest.SKIP))
    if not run:
        complaints.append("no example runs")
    elif inspect.isfunction(thing) and f"{thing.__name__}(" not in run:
        complaints.append("no example calls it")
    if not inspect.isclass(thing):
        explained = set(names_of(sections.get("Parameters", "")))
        complaints += differences("parameters", explained, parameters_of(thing))
        if inspect.signature(thing).return_annotation not in ("None", None) and not (
            sections.keys() & {"Returns", "Yields"} or docstring.startswith("Return ")
        ):
            complaints.append("it does not say what it returns")
        return complaints
    if not issubclass(thing, Exception):
        complaints += differences("parameters", explained_by(thing), parameters_of(thing))
    for method_name, method in methods_of(thing).items():
        if not (method.__doc__ or "").strip():
            complaints.append(f"{method_name} has no docstring")
            continue
        section = sections_of(method.__doc__ or "").get("Parameters")
        if section is not None:
            complaints += differences(
                f"parameters of {method_name}", set(names_of(section)), parameters_of(method)
            )
    return complaints


def differences(what: str, explained: set[str], real: set[str]) -> list[str]:
    complaints = []
    if explained - real:
        complaints.append(f"{what} that are not there: {', '.join(sorted(explained - real))}")
    if real - explained:
        complaints.append(f"{what} that are not explained: {', '.join(sorted(real - explained))}")
    return complaints


NAMES = sorted(names_in_packages() | names_in_reference(ROOT / "docs" / "api"))


@pytest.mark.parametrize("name", NAMES)
def test_name_is_documented(name: str) -> None:
    """It exists; a function or class says what it does, explains its parameters, has an example."""
    thing = resolve_name(name)
    if callable(thing):
        assert complaints_about(name, thing) == []


def test_names_are_found() -> None:
    """The test above is about something."""
    assert len(names_in_packages()) > 100
    assert len(names_in_reference(ROOT / "docs" / "api")) > 100


def test_entries_of_a_page(tmp_path: Path) -> None:
    """Only entries of summaries count, each in the module that was named last."""
    lines = [
        ".. currentmodule:: one", ".. autosummary::", "   :toctree: made/", "", "   First",
        "   part.second", "", ".. note::", "   third", "", ".. currentmodule:: two",
        ".. autosummary::", "", "   Fourth",
    ]  # fmt: skip
    (tmp_path / "page.rst").write_text("\n".join(lines), encoding="utf-8")
    assert names_in_reference(tmp_path) == {"one.First", "one.part.second", "two.Fourth"}


def plain(first: int, *rest: int, last: int = 0) -> int:
    """Return the sum.

    Parameters
    ----------
    first, last : int
        Two numbers.
    *rest : int
        Others.

    Returns
    -------
    int
        The sum: of all of them.

    Examples
    --------
    >>> plain(1, 2)
    3
    """
    return first + sum(rest) + last


@dataclasses.dataclass
class Parent:
    """A point.

    Attributes
    ----------
    x : int
        Position.
    norm : int
        Made from it.

    Examples
    --------
    >>> Parent(-1).norm
    1
    """

    x: int
    norm: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.norm = abs(self.x)


@dataclasses.dataclass
class Child(Parent):
    """A point on a plane; `Parent` has the first number.

    Attributes
    ----------
    y : int
        The other number.

    Examples
    --------
    >>> Child(-1, 2).y
    2
    """

    y: int


def changed(thing: Any, old: str, new: str) -> Any:
    """Return something with the signature of `thing` and another docstring."""

    def copy() -> None:
        pass

    copy.__name__ = thing.__name__
    copy.__signature__ = inspect.signature(thing)
    copy.__doc__ = thing.__doc__.replace(old, new)
    assert copy.__doc__ != thing.__doc__
    return copy


@pytest.mark.parametrize("thing", [plain, Parent, Child])
def test_nothing_is_missing(thing: Any) -> None:
    """What is documented well is accepted."""
    assert complaints_about("here", thing) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("first, last : int", "first : int", "parameters that are not explained: last"),
        ("*rest : int", "others : int", "parameters that are not there: others"),
        (">>> plain(1, 2)", "The sum of 1 and 2:", "no example runs"),
        (">>> plain(1, 2)", ">>> plain(1, 2)  # doctest: +SKIP", "no example runs"),
        (">>> plain(1, 2)", ">>> 1 + 2", "no example calls it"),
        ("Examples\n", "Exercises\n", "no example runs"),
    ],
)
def test_something_is_missing(old: str, new: str, complaint: str) -> None:
    """What is not documented well is told."""
    assert complaint in complaints_about("here", changed(plain, old, new))


def test_something_is_missing_in_a_class() -> None:
    """Fields that nobody explains, and methods without a docstring, are told."""

    @dataclasses.dataclass
    class Bare(Parent):
        """A point.

        Examples
        --------
        >>> Bare(1, 2).z
        2
        """

        z: int

        def double(self) -> int:
            return 2 * self.z

    Bare.double.__module__ = "badacost.made_up"
    assert complaints_about("here", Bare) == [
        "parameters that are not explained: z",
        "double has no docstring",
    ]


def test_types_are_public() -> None:
    """Type checkers of users look at the annotations."""
    assert (PACKAGE / "py.typed").is_file()


def test_types_are_checked() -> None:
    """All of the package is checked strictly; only kernels, which numba types, are not."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"] is True
    assert settings["files"] == ["src", "experiments", "campaigns"]
    assert not settings.get("ignore_errors", False)
    assert not settings.get("exclude")
    for override in settings["overrides"]:
        if override.get("ignore_errors") or override.get("disallow_untyped_defs") is False:
            modules = override["module"]
            assert all(re.fullmatch(r"badacost\.[\w.]*kernels", module) for module in modules)
            paths = [PACKAGE.parent / f"{module.replace('.', '/')}.py" for module in modules]
            compiled = "njit|inner\\(\\)|@loop_kernel"
            assert all(re.search(compiled, path.read_text(encoding="utf-8")) for path in paths)


def test_types_are_checked_in_every_module() -> None:
    """No module leaves itself out."""
    for path in PACKAGE.rglob("*.py"):
        assert not re.search(r"#\s*mypy:|@no_type_check", path.read_text(encoding="utf-8")), path
