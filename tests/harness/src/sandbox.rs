//! A temporary folder and the processes in it, which all go away together.

use rustix::process::Pid;
use std::{
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::Mutex,
};

/// Reads `add PGID` and `del PGID` lines; at the end of its input, which comes with the death of the test process
/// however it died, it kills what is left and removes the folder. Removing is repeated because a process that was just
/// killed may still be finishing a write.
const GUARDIAN: &str = r#"
trap '' INT TERM HUP
groups=" "
while read -r verb group; do
    case $verb in
        add) groups="$groups$group " ;;
        del) case $groups in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
tries=0
while rm -rf "$1" 2>/dev/null; [ -e "$1" ] && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.05; done
"#;

/// A temporary folder and the process groups that work in it.
///
/// Rust's destructors do not run when the test process is killed, so a small guardian process in a process group of its
/// own waits for the end of a pipe from us, then kills the registered groups and removes the folder. The same guardian
/// removes the folder on an ordinary drop.
#[derive(Debug)]
pub struct Sandbox {
    dir: PathBuf,
    guardian: Mutex<Guardian>,
}

#[derive(Debug)]
struct Guardian {
    process: Child,
    orders: Option<ChildStdin>,
}

impl Sandbox {
    /// A new folder under the system's temporary one.
    ///
    /// # Panics
    /// When the folder or the guardian cannot be made.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("coord-harness-")
            .tempdir()
            .expect("a temporary folder")
            .keep();
        let mut process = Command::new("sh")
            .args(["-c", GUARDIAN, "guardian"])
            .arg(&dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C and a test runner's timeout signal the test's whole group; the guardian has to outlive it.
            .process_group(0)
            .spawn()
            .expect("sh starts");
        let orders = process.stdin.take();
        Self {
            dir,
            guardian: Mutex::new(Guardian { process, orders }),
        }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// From now on the process group dies with the sandbox.
    pub(crate) fn adopt(&self, group: Pid) {
        self.order("add", group);
    }

    /// The process group has ended; its number may soon be someone else's.
    pub(crate) fn release(&self, group: Pid) {
        self.order("del", group);
    }

    fn order(&self, verb: &str, group: Pid) {
        let mut guardian = self.guardian.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(orders) = &mut guardian.orders {
            // Fails only if someone killed the guardian: then destructors are what is left.
            let _ = writeln!(orders, "{verb} {}", group.as_raw_nonzero());
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let guardian = self.guardian.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop(guardian.orders.take());
        let _ = guardian.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
