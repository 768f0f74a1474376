"""The clients of this folder: what each needs, and how it is run."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent


class Language(NamedTuple):
    """A client in one language.

    Attributes:
        name: also that of its folder, with `client.*`, and `install.sh` and `build.sh` where there is something to do.
        run: the command that calls the server at ADDRESS.
        file: the client itself.
        programs: that must be there.
        check: a command that fails where a library is missing; none where `install.sh` brings them.
    """

    name: str
    run: str
    file: str
    programs: tuple[str, ...]
    check: str = "true"

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    def missing(self) -> str:
        """What is not there; "" if all is."""
        for program in self.programs:
            if shutil.which(program) is None:
                return f"there is no {program}"
        done = subprocess.run(["sh", "-c", self.check], capture_output=True)
        return "" if done.returncode == 0 else f"a library is missing: {self.check}"


LANGUAGES = (
    Language("python", "PYTHONPATH=stubs .venv/bin/python client.py ADDRESS", "client.py", ("python3",)),
    Language("node", "node client.js ADDRESS", "client.js", ("node", "npm")),
    Language(
        "go",
        "./client ADDRESS",
        "client.go",
        ("go", "protoc"),
        "test -d /usr/share/gocode/src/google.golang.org/grpc/cmd/protoc-gen-go-grpc",
    ),
    Language(
        "java",
        'java -cp "classes:$CLASSPATH" Client ADDRESS',
        "Client.java",
        ("java", "javac", "protoc", "grpc_java_plugin"),
        "cd /usr/share/java && ls grpc-protobuf.jar netty-all.jar perfmark-api.jar",
    ),
    Language(
        "cpp", "./client ADDRESS", "client.cc", ("g++", "protoc", "grpc_cpp_plugin"), "pkg-config --exists grpc++"
    ),
    Language(
        "ruby", "ruby -I stubs client.rb ADDRESS", "client.rb", ("ruby", "grpc_tools_ruby_protoc"), "ruby -r grpc -e 0"
    ),
)
