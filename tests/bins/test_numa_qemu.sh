#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house,slow timeout=180 promise=P1 excuse=x86-64,read
# P1: test_numa_nodes passes on two NUMA nodes. An emulated machine boots a Debian kernel with this program only. Needs
# the Debian packages qemu-system-x86 linux-image-cloud-amd64 busybox-static cpio; `./dev numa` installs them.
set -euo pipefail
: "${FDR_BUILD:?}"

skip() { echo "skipped: $*"; exit 77; }
[ "$(uname -m)" = x86_64 ] || skip "the emulated machine is an x86-64"
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then skip "plain builds only"; fi
need='(Debian: qemu-system-x86 linux-image-cloud-amd64 busybox-static cpio; ./dev numa installs them)'
for tool in qemu-system-x86_64 cpio gzip ldd; do command -v $tool >/dev/null || skip "no $tool $need"; done
busybox=/bin/busybox
if [ ! -x $busybox ] || ldd $busybox >/dev/null 2>&1; then skip "no static busybox $need"; fi
kernel=$(find /boot -name 'vmlinuz-*-cloud-amd64' 2>/dev/null | sort -V | tail -1)
[ -n "$kernel" ] || skip "no kernel image /boot/vmlinuz-*-cloud-amd64 $need"
[ -r "$kernel" ] || skip "$kernel cannot be read by this user"

program=$FDR_BUILD/tests/test_numa_nodes
[ -x "$program" ] || { echo "no $program"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp}
cp $busybox "$root/bin/busybox"
cp "$program" "$root/bin/test"
while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done < <(ldd "$program" | grep -oE '/[^ ]+')
cat >"$root/init" <<'END'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
$b mkdir -p /dev/shm
$b mount -t tmpfs -o mode=1777 shm /dev/shm
$b echo "booted in $($b cut -d' ' -f1 /proc/uptime) s"
$b echo "nodes: $($b cat /sys/devices/system/node/online)"
/bin/test 2>&1
$b echo "exit code $?"
$b echo "done after $($b cut -d' ' -f1 /proc/uptime) s"
$b poweroff -f
END
chmod 755 "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initramfs.gz"

# Never -accel kvm: nested virtualisation may exist and not work.
timeout 150 qemu-system-x86_64 -accel tcg -m 512 -smp 4 \
    -object memory-backend-ram,id=m0,size=256M -object memory-backend-ram,id=m1,size=256M \
    -numa node,nodeid=0,memdev=m0,cpus=0-1 -numa node,nodeid=1,memdev=m1,cpus=2-3 -numa dist,src=0,dst=1,val=20 \
    -kernel "$kernel" -initrd "$work/initramfs.gz" -append 'console=ttyS0 quiet panic=-1' \
    -display none -no-reboot -monitor none -serial stdio </dev/null >"$work/console" 2>&1 || true
tr -d '\r' <"$work/console"
grep -q 'nodes: 0-1' "$work/console" || { echo "the machine did not come up with two nodes"; exit 1; }
grep -q 'exit code 0' "$work/console" || { echo "the test failed on two nodes"; exit 1; }
