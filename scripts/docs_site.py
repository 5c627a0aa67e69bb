"""Write the pages that the site is built of: `python -m scripts.docs_site FOLDER`; `make docs` does the rest.

The pages in docs/ link to files of the repository outside of it, as readers on a forge need it. On the site
such a file is a page of its own, with the file's text, and the links lead there. The pages of the Python
reference are made here too, one for each module that says in ``__all__`` what it offers. The builder sees
plain Markdown and needs no plugin for this.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
# Pages of the navigation that lie outside of docs/.
NAMED: Final = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
}
LANGUAGES: Final = {".json": "json", ".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
MODULES: Final = (
    "guardrail",
    "guardrail.client",
    "guardrail.judges",
    "guardrail.offline",
    "guardrail.testing",
)

# A code block or span, which holds no links, or a link's target.
_LINK: Final = re.compile(
    r"(?P<code>^( *)```.*?^\2```|`[^`\n]*`)|\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)",
    re.DOTALL | re.MULTILINE,
)


def main() -> None:
    """Write the pages to the folder that is given, which is emptied first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)


def write(folder: Path) -> None:
    """Write docs/, the files that its pages link to, those that these link to, and the Python reference."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    written: set[str] = set()
    open_ = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")] + list(NAMED)
    while open_:
        path = open_.pop()
        if path in written or (not path.endswith(".md") and (folder / site_uri(path)).is_file()):
            continue  # files in docs/ that are no pages are there already
        written.add(path)
        text, targets = with_links_of_the_site(path, text_of(path))
        page = folder / site_uri(path)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        open_ += targets
    (folder / "api").mkdir()
    for module in MODULES:
        page = folder / "api" / f"{module.removeprefix('guardrail.')}.md"
        page.write_text(reference(module), encoding="utf-8")


def site_uri(path: str) -> str:
    """Where a file or folder of the repository is among the site's sources."""
    if path in NAMED:
        return NAMED[path]
    if path.startswith("docs/"):
        inside = path.removeprefix("docs/")
        return f"{inside}/README.md" if (ROOT / path).is_dir() else inside
    return f"files/{path}" if path.endswith(".md") else f"files/{path}.md"


def with_links_of_the_site(path: str, text: str) -> tuple[str, list[str]]:
    """A page with its links as the site needs them, and what they lead to in the repository."""
    targets: list[str] = []

    def exchanged(found: re.Match[str]) -> str:
        target = resolved(path, found["target"]) if found["target"] else None
        if target is None:
            return found[0]
        targets.append(target)
        link = posixpath.relpath(site_uri(target), posixpath.dirname(site_uri(path)) or ".")
        return f"]({link}{found['anchor'] or ''})"

    if path.endswith(".md"):
        text = _LINK.sub(exchanged, text)
    return text, targets


def resolved(here: str, target: str) -> str | None:
    """The path in the repository that a link leads to; None if it is an address or leads to nothing."""
    if re.match(r"[a-z]+:", target):
        return None
    path = Path(os.path.normpath(ROOT / posixpath.dirname(here) / target))
    return path.relative_to(ROOT).as_posix() if path.exists() and path.is_relative_to(ROOT) else None


def text_of(path: str) -> str:
    """A file as a page: Markdown as it is, others as a block of code, folders as a list."""
    file = ROOT / path
    if file.is_dir():
        names = sorted(one.name for one in file.iterdir() if one.is_file())
        return f"# {file.name}\n\n" + "".join(f"- [{name}]({name})\n" for name in names)
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return text
    return f"# {path}\n\n````{LANGUAGES.get(file.suffix, 'text')}\n{text.rstrip()}\n````\n"


def reference(module: str) -> str:
    """The page of a module: each public name, from its docstring."""
    return f"# {module}\n\n" + "".join(f"::: {module}.{name}\n\n" for name in public_names(module))


def public_names(module: str) -> list[str]:
    """``__all__`` of the module without ``__version__``."""
    return [name for name in import_module(module).__all__ if not name.startswith("__")]


if __name__ == "__main__":
    main()
