from __future__ import annotations

import pytest

from memkit.doctor.watch_limit import silent_file_system

TABLE = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /home rw,relatime shared:7 master:2 - nfs4 server:/home rw,vers=4.2
24 23 254:9 / /home/ann rw,relatime - xfs /dev/vdb rw
25 22 0:40 / /mnt/two\040words rw - cifs //host/share rw
26 22 0:41 / /mnt/two\040words/over rw - ext4 /dev/vdc rw
27 22 0:42 / /mnt/two\040words/over rw - fuse.sshfs host: rw
28 22 0:43 / /mnt/usb rw - fuseblk /dev/sdb1 rw
29 22 0:44 / /team rw - 9p host rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/srv/project", None),
        ("/home", "nfs4"),
        ("/home/bob/project", "nfs4"),
        ("/homes", None),
        ("/home/ann/project", None),
        ("/home/anna", "nfs4"),
        ("/mnt/two words/x", "cifs"),
        ("/mnt/two words/over/x", "fuse.sshfs"),
        ("/mnt/usb/x", None),
        ("/team/not/there", "9p"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str | None) -> None:
    assert silent_file_system(path, TABLE) == kind


def test_the_mount_table_of_this_machine() -> None:
    assert silent_file_system("/proc") is None
