"""one_place.py finds the calls that it is for, and no others."""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
CASES = [  # a file, its line, what is said
    ("agent/a.cc", "std::thread watcher([] {});", "agent/a.cc:1: call start_thread()"),
    ("trainer/a.h", "std::vector<std::jthread> all_;", "trainer/a.h:1: call start_thread()"),
    ("base/system/start_thread.h", "std::thread thread_;", ""),
    ("trainer/a.cc", "std::this_thread::sleep_for(kPause);", ""),
    ("trainer/a.cc", "wake_ = eventfd(0, EFD_CLOEXEC);", "trainer/a.cc:1: call WakePipe"),
    ("trainer/a.cc", "// Not an eventfd(), which sandboxes refuse.", ""),
    ("trainer/a.cc", "const ssize_t done = ::write(fd, bytes.data(), size);", "trainer/a.cc:1: call write_all()"),
    ("agent/a.cc", "n = ::pwrite(file.get(), text.data(), text.size(), at);", "agent/a.cc:1: call write_all()"),
    ("agent/a.cc", "console.write(file, text);", ""),
    ("agent/a.cc", "using namespace asio::experimental::awaitable_operators;", "agent/a.cc:1: call ended_by()"),
    ("agent/a.cc", "std::random_device source;", "agent/a.cc:1: call random_bytes()"),
    ("agent/a.cc", "std::filesystem::remove_all(folder);", "agent/a.cc:1: call remove_folder()"),
]

for path, line, said in CASES:
    with tempfile.TemporaryDirectory() as name:
        file = pathlib.Path(name, path)
        file.parent.mkdir(parents=True)
        file.write_text(line + "\n")
        run = subprocess.run([sys.executable, HERE / "one_place.py", name], capture_output=True, text=True)
        assert run.returncode == bool(said) and said in run.stdout, (path, line, run)
