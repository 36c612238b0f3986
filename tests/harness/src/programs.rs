//! Finding the programs that the harness runs, and saying how to get those that are missing.

use std::path::{Path, PathBuf};

/// The path of `program`; panics with the remedy if it is not installed.
pub(crate) fn program(program: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{}", missing(program, package)))
}

/// `file` itself; panics with the remedy if it does not exist.
pub(crate) fn file<'a>(file: &'a str, package: &str) -> &'a str {
    assert!(Path::new(file).is_file(), "{}", missing(file, package));
    file
}

fn missing(what: &str, package: &str) -> String {
    format!("{what} is missing: run `make setup` or `apt-get install {package}`")
}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(expected = "no-such-etcd is missing: run `make setup` or `apt-get install etcd-server`")]
    fn a_missing_program_says_how_to_get_it() {
        super::program("no-such-etcd", "etcd-server");
    }

    #[test]
    #[should_panic(expected = "/no/such.jar is missing: run `make setup` or `apt-get install zookeeper`")]
    fn a_missing_jar_says_how_to_get_it() {
        super::file("/no/such.jar", "zookeeper");
    }
}
