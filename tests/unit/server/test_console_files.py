"""The console's files: complete, and served with a policy; and the files to deploy."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from click.testing import CliRunner
from served import served

from spaseq.cli import command_line
from spaseq.server.console_routes import FOLDER, POLICY

ROOT = Path(__file__).parents[3]


def test_every_module_that_is_imported_is_there() -> None:
    names = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    used = {"index.html"}
    for path in (path for path in FOLDER.glob("*") if path.suffix in (".html", ".js")):
        text = path.read_text("utf-8")
        used |= set(re.findall(r'(?:from|import) "\./([^"]+)"', text))
        used |= set(re.findall(r'(?:src|href)="([\w./]+)(?:#\w+)?"', text))
    assert used <= names
    assert names - used == {"vendor/LICENSES.txt"}


def test_every_name_that_is_imported_is_exported() -> None:
    for path in FOLDER.glob("*.js"):
        imports = re.findall(r'import \{([^}]+)\} from "\./(\w+\.js)"', path.read_text("utf-8"))
        for names, module in imports:
            exported = re.findall(
                r"export (?:async )?(?:const|function|class) (\w+)",
                (FOLDER / module).read_text("utf-8"),
            )
            missing = {name.strip() for name in names.split(",")} - {"", *exported}
            assert not missing, f"{path.name} imports {missing} of {module}"


def test_nothing_is_written_as_html() -> None:
    for path in FOLDER.glob("*.js"):
        found = re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(", path.read_text("utf-8")
        )
        assert found is None, path.name


def test_pages_have_the_policy_and_the_api_another(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        kinds = {"/": "text/html", "/console.js": "javascript", "/console.css": "css"}
        for path, kind in kinds.items():
            answer = server.http.get(path)
            assert answer.status_code == 200
            assert kind in answer.headers["content-type"]
            assert answer.headers["content-security-policy"] == POLICY
        for path in ("/%2e%2e/console_routes.py", "/none.js", "/vendor"):
            assert server.http.get(path).status_code == 404
        known = server.http.get("/v1/language").json()
        assert {"SEQ", "WITHIN", "HAVING", "MINUTES"} <= set(known["keywords"])
        assert {"ABS", "REGEX"} <= set(known["functions"])


def test_the_libraries_are_those_of_the_lock_file() -> None:
    lock = json.loads((ROOT / "vendor/console/package-lock.json").read_text("utf-8"))
    notices = (FOLDER / "vendor/LICENSES.txt").read_text("utf-8")
    for path, package in lock["packages"].items():
        name = path.removeprefix("node_modules/")
        if name and "esbuild" not in name:
            assert f"{name} {package['version']}\n" in notices


def options_of(command: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in command if word.startswith("--")}


def test_the_commands_of_deploy_are_those_of_the_command_line() -> None:
    known = set(
        re.findall(r"--[\w-]+", CliRunner().invoke(command_line, ["serve", "--help"]).output)
    )
    container = (ROOT / "deploy/Containerfile").read_text("utf-8")
    entry = re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", container, re.MULTILINE)
    started = [word for words in entry for word in json.loads(words)]
    assert started[:2] == ["spaseq", "serve"]
    assert options_of(started) <= known
    unit = (ROOT / "deploy/spaseq.service").read_text("utf-8")
    command = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert command is not None
    assert shlex.split(command[1])[1] == "serve"
    assert options_of(shlex.split(command[1])) <= known
