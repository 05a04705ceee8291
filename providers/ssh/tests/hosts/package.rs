//! `ssh_package`, with the host's own apt and the packages that the lab's hosts have in a folder.

use karmaform_model::Action;

use crate::lab::{Lab, lab, say};

const KIND: &str = "ssh_package";

/// A lab whose hosts have packages to install, or `None` after saying that `test` is skipped.
fn stocked(test: &str) -> Option<Lab> {
    let lab = lab(test)?;
    if lab.shell("test -e /srv/packages/Packages && echo yes || echo no") == "yes" {
        return Some(lab);
    }
    say(&format!("SKIPPED: {test}: the lab's hosts have no packages to install"));
    None
}

/// All that is there, but for what the package manager remembers of itself.
const SHAPE: &str = "find /etc /usr /opt /home /root /var -xdev \\( -path /var/log -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/ucf \
                     -o -path /var/lib/systemd -o -path /var/tmp -o -path /var/backups -o -name '*-' -o -name .pwd.lock \\) -prune \
                     -o -printf '%p %y %m %u\\n' | sort; dpkg-query -W -f '${Package} ${db:Status-Status}\\n'";

#[test]
fn a_package_comes_and_goes_with_what_it_needs() {
    let Some(lab) = stocked("a_package_comes_and_goes_with_what_it_needs") else { return };
    let wanted = |name: &str| lab.arguments(KIND, [("name", name.into())]);
    let before = lab.shell(SHAPE);
    let haproxy = lab.create(KIND, &wanted("haproxy"));
    let keepalived = lab.create(KIND, &wanted("keepalived"));
    let state = "systemctl is-enabled haproxy keepalived; systemctl is-active haproxy keepalived";
    assert_eq!(lab.shell(&format!("{state} || true")), "disabled\ndisabled\ninactive\ninactive", "nothing starts by itself");
    assert_eq!(lab.shell("ls /usr/sbin/policy-rc.d 2>/dev/null || echo none"), "none");
    lab.step(KIND, Some(&haproxy), Some(&wanted("haproxy")), Action::NoOp);

    // Removed by hand, it comes again.
    lab.shell("dpkg --remove keepalived >/dev/null 2>&1");
    assert_eq!(lab.plan(KIND, Some(&keepalived), Some(&wanted("keepalived"))).unwrap().action(), Action::Create);
    let keepalived = lab.create(KIND, &wanted("keepalived"));

    // What the other one needs stays until that goes, too.
    lab.step(KIND, Some(&haproxy), None, Action::Delete);
    assert_eq!(lab.shell("keepalived --version 2>&1 | head -c 10"), "Keepalived");
    lab.delete(KIND, &keepalived);
    let after = lab.shell(SHAPE);
    let left: Vec<_> = after.lines().filter(|l| !before.contains(l)).collect();
    let lost: Vec<_> = before.lines().filter(|l| !after.contains(l)).collect();
    assert_eq!((left, lost), (vec![], vec![]));
    lab.assert_nothing_left();
}

#[test]
fn a_package_of_somebody_else_is_used_and_left() {
    let Some(lab) = stocked("a_package_of_somebody_else_is_used_and_left") else { return };
    let wanted = lab.arguments(KIND, [("name", "procps".into())]);
    lab.step(KIND, None, Some(&wanted), Action::NoOp);
    lab.step(KIND, Some(&wanted), None, Action::Delete);
    assert_eq!(lab.shell("dpkg-query -W -f '${db:Status-Status}' procps"), "installed");
    lab.assert_nothing_left();
}

#[test]
fn a_package_that_nobody_has_is_said_with_what_apt_says() {
    let Some(lab) = stocked("a_package_that_nobody_has_is_said_with_what_apt_says") else { return };
    let wanted = lab.arguments(KIND, [("name", "no-such-package".into())]);
    let failure = lab.apply(KIND, &lab.plan(KIND, None, Some(&wanted)).unwrap()).unwrap_err();
    assert_eq!(failure.summary, "Package can't be installed");
    assert!(failure.detail.contains("Unable to locate package no-such-package"), "{}", failure.detail);
    lab.assert_nothing_left();
}

#[test]
fn where_nothing_can_be_installed_it_is_said_before_it_is_tried() {
    let Some(lab) = stocked("where_nothing_can_be_installed_it_is_said_before_it_is_tried") else { return };
    lab.shell("mount --bind /usr /usr && mount -o remount,bind,ro /usr");
    let wanted = lab.arguments(KIND, [("name", "haproxy".into())]);
    let failure = lab.apply(KIND, &lab.plan(KIND, None, Some(&wanted)).unwrap()).unwrap_err();
    lab.shell("umount --lazy /usr");
    assert!(failure.summary == "Package can't be installed" && failure.detail.contains("/usr can't be written"), "{failure:?}");
    lab.assert_nothing_left();
}
