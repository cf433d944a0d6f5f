#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house promise=P6
# P6: section 12.2 of docs/FORMAT.md suffices to read samples. This reader was written from that page only. A program
# takes samples by hand and writes down their contents. The test decodes every bin of samples by itself, verifies its
# check, and compares the contents.
import os
import subprocess
import sys
import tempfile

from test_independent_reader import Bits, Bin, Image, take_gamma, take_length, take_low

PROGRAM = r"""
#include <fdr/fdr.h>
#include <stdio.h>
#include <stdlib.h>
static uint64_t state = 88172645463325252u;
static uint64_t dice(uint64_t n)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % n;
}
int main(int argc, char **argv)
{
    (void)argc;
    if (fdr_init(NULL)) return 2;
    struct fdr_sampled *s = fdr_sampled_open(7, "by hand", FDR_BY_CPU_TIME, 1000000);
    uint64_t time = 1000, number = 0, stack[300];
    uint32_t region[4], depth = 0;
    for (long n = atol(argv[1]); n > 0; n--) {
        uint64_t weight = dice(20) ? 1 : dice(1000) ? 1 + dice(9) : 1 + dice(1u << 30);
        uint64_t wide = dice(50) ? 200 : 1u << 30;
        time += dice(30) ? weight * 1000000 + dice(5000) : dice(wide * 1000);
        uint32_t keep = depth ? (uint32_t)dice(depth + 1) : 0, regions = (uint32_t)dice(4);
        if (!dice(500)) keep = 0, depth = (uint32_t)dice(250); /* deeper than anything */
        else depth = keep + (uint32_t)dice(6);
        for (uint32_t i = keep; i < depth; i++) { /* outermost first here; a few hundred sites in two libraries */
            uint64_t module = dice(4) ? 0x556a1a000000u : 0x7f6193000000u;
            stack[i] = dice(200) ? module + dice(40) * 4096 + dice(6) * 16 : dice(1ull << 48);
        }
        uint64_t inner[300], pc = dice(100) ? 0x556a1a000000u + dice(900) * 64 : dice(1ull << 48);
        for (uint32_t i = 0; i < depth; i++) inner[i] = stack[depth - 1 - i];
        for (uint32_t i = 0; i < regions; i++) region[i] = 1 + i * 300 + (uint32_t)dice(2);
        struct fdr_look look = {.weight = weight, .pc = pc, .stack = inner, .stack_count = depth, .path = region,
                                .path_count = regions, .flags = dice(30) ? 0 : FDR_LOOK_CUT};
        number += weight;
        fdr_sample_at(s, &look, time);
        printf("%llu %llu %u %llu", (unsigned long long)time, (unsigned long long)number, look.flags ? 2u : 0u, (unsigned long long)pc);
        for (uint32_t i = 0; i < regions; i++) printf(" %llu", (unsigned long long)region[i] | 1ull << 48);
        for (uint32_t i = 0; i < depth; i++) printf(" %llu", (unsigned long long)stack[i]);
        putchar('\n');
    }
    fdr_sampled_close(s);
    return fdr_snapshot("end") != 0;
}
"""


def zigzag(z):
    return z >> 1 ^ -(z & 1)


def sized(b):
    return take_low(b, b.take(6))


class Site:
    def __init__(self, step):
        self.step, self.first, self.second, self.leaf = step, 0, 0, 0


class SampleBin:
    """Records of a bin of class 5, one by one."""

    def __init__(self, one):
        self.one, self.most = one, min(512, one.size // 8)
        self.bits = Bits(one.payload, one.bits)
        self.sites, self.nodes = [Site(None)], [(None, 0)]
        self.number = self.stride = self.rate = self.pace = self.address = self.leaf = self.near = self.far = 0
        self.newest, self.gap_length, self.other_length, self.last = 0, 20, 20, one.base_tick

    def index(self, count):
        i = self.bits.take((count - 1).bit_length())
        assert i < count
        return i

    def take_number(self, first):
        if first:
            self.number, self.stride = sized(self.bits), sized(self.bits)
            return
        if self.bits.take(1):
            self.stride = sized(self.bits)
        self.number += self.stride

    def take_gap(self, first):
        b = self.bits
        if self.pace and b.take(1):
            self.other_length = take_length(b, self.other_length)
            gap = self.stride * self.pace + zigzag(take_low(b, self.other_length))
        else:
            self.gap_length = take_length(b, self.gap_length)
            gap = take_low(b, self.gap_length)
        if not first:
            rate = gap // self.stride
            if abs(rate - self.rate) <= rate // 32:
                self.pace = (rate + self.rate) // 2
            self.rate = rate
        return gap

    def take_address(self, against):
        length = self.bits.take(5)
        if length <= 28:
            return against + zigzag(take_low(self.bits, length))
        if length == 29:
            return self.far + zigzag(take_low(self.bits, self.bits.take(5)))
        assert length == 31
        return self.bits.take(48)

    def told(self, address, inner):
        difference = address - self.near
        if (2 * difference if difference >= 0 else -2 * difference - 1).bit_length() > 28:
            self.far = self.near
        self.near = address
        if inner is not None:
            self.sites[inner].leaf = address

    def take_step(self, inner):
        """Reads the step, and its site if it has one."""
        b = self.bits
        if b.take(1):
            if b.take(1):
                site = self.index(len(self.sites))
                return self.sites[site].step, site
            leaf = self.sites[inner].leaf if inner is not None else 0
            return self.take_address(leaf or self.address), None
        if not b.take(1):
            return self.sites[self.sites[inner].first].step, self.sites[inner].first
        if not b.take(1):
            return self.sites[self.sites[inner].second].step, self.sites[inner].second
        return take_gamma(b) - 1 + (1 << 48), None

    def new_step(self, inner, all_nodes):
        step, site = self.take_step(inner)
        if not step >> 48:
            self.told(step, inner)
            self.address = step
        if site is None and len(self.sites) < self.most:
            site = len(self.sites)
            self.sites.append(Site(step))
        if site is not None and inner is not None and self.sites[inner].first != site:
            self.sites[inner].second, self.sites[inner].first = self.sites[inner].first, site
        all_nodes = all_nodes and site is not None and len(self.nodes) < self.most
        if all_nodes:
            self.nodes.append((self.newest, site))
            self.newest = len(self.nodes) - 1
        return step, site, all_nodes

    def record(self, first):
        b = self.bits
        self.take_number(first)
        gap = self.take_gap(first)
        self.last += gap
        news, node = 0, self.newest
        if b.take(1):
            node = self.index(len(self.nodes))
            news = take_gamma(b) if b.take(1) else 0
        b.mix((gap << 32 | gap >> 32) ^ self.number)
        b.mix(self.stride)
        b.mix(node + news * 2**16)
        path, at = [], node
        while at:
            path.insert(0, self.sites[self.nodes[at][1]].step)
            at = self.nodes[at][0]
        self.newest, inner, all_nodes = node, self.nodes[node][1], True
        for _ in range(news):
            step, inner, all_nodes = self.new_step(inner, all_nodes)
            path.append(step)
            b.mix(step)
        leaf = self.sites[inner].leaf if inner is not None else 0
        pc = leaf or self.leaf
        if b.take(1):
            pc = self.take_address(pc)
        self.told(pc, inner)
        self.leaf = pc
        flags = b.take(3) if b.take(1) else 0
        b.mix(pc + flags * 2**48)
        return [self.last, self.number, flags, pc, *path]

    def records(self):
        out = [self.record(i == 0) for i in range(self.one.count)]
        assert self.bits.at == self.one.bits, "the bits are not used up"
        assert self.bits.hash >> 40 == self.one.check, "the check"
        return out


def sample_bins(image):
    """Section 8: whole bins and their halves from bins_off on, as their headers say."""
    for at in range(4096, len(image.data) - 511, 512):
        if image.u32(at) == 0x4E424446 and image.u8(at + 18) == 5 and image.u32(at + 60) & 1:
            yield Bin(image, at)


def cut(sample, words):
    """The stored part of a path that is too deep for a small bin: all regions, the innermost addresses."""
    regions = [step for step in sample[4:] if step >> 48]
    addresses = [step for step in sample[4:] if not step >> 48]
    return [*sample[:2], sample[2] | 2, sample[3], *regions, *addresses[len(addresses) - (words - 4 - len(regions)):]]


def compare(program, library, work, what, count, settings):
    here = os.path.join(work, what.replace(" ", "-"))
    os.mkdir(here)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    environment.update({"FDR_ARENA": "anonymous", "FDR_SIGNAL": "none", "FDR_TIMER": "monotonic", "FDR_DIR": here, "LD_LIBRARY_PATH": library},
                       **settings)
    said = subprocess.run([program, str(count)], check=True, env=environment, timeout=100, capture_output=True, text=True).stdout
    truth = {}
    for line in said.splitlines():
        time, number, *rest = (int(word) for word in line.split())
        truth[number] = [time, number, *rest]
    [name] = [n for n in os.listdir(here) if n.endswith(".fdr")]
    with open(os.path.join(here, name), "rb") as f:
        image = Image(f.read())
    bins = kept = sizes = bits = 0
    for one in sample_bins(image):
        bins, sizes, bits = bins + 1, sizes | one.size, bits + one.bits
        for record in SampleBin(one).records():
            expect = truth.get(record[1])
            if expect and len(record) < len(expect):
                expect = cut(expect, len(record))
            if record != expect:
                sys.exit(f"{what}: sample {record[1]} of a bin of {one.size} is\n{record}\nnot\n{expect}")
            kept += 1
    print(f"{what}: {kept} samples of {count} in {bins} bins as they were said, {bits / 8 / max(kept, 1):.1f} bytes each")
    return kept, sizes


def main():
    build, source = os.environ.get("FDR_BUILD", ""), os.environ.get("FDR_SOURCE", "")
    library, sanitize = os.path.join(build, "lib"), os.environ.get("FDR_SANITIZE", "")
    if not os.path.exists(os.path.join(library, "libfdr.so")):
        print("libfdr is not built")
        return 77
    with tempfile.TemporaryDirectory() as work:
        program, path = os.path.join(work, "samples"), os.path.join(work, "samples.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(source, "include"), path]
        command += ["-fsanitize=" + sanitize] if sanitize else []
        subprocess.run(command + ["-o", program, "-L", library, "-Wl,-rpath," + library, "-lfdr"], check=True)
        kept, sizes = compare(program, library, work, "all of them", 12000, {"FDR_BUFFER": "8M"})
        if kept != 12000 or sizes & 4096 == 0:
            sys.exit(f"{kept} of 12000, bins {sizes}: not what this is for")
        for what, settings in (("thinned", {"FDR_BUFFER": "512K", "FDR_BIN": "1K", "FDR_STRATEGY": "whole"}),
                               ("the newest", {"FDR_BUFFER": "512K", "FDR_BIN": "512", "FDR_STRATEGY": "last"})):
            kept, _ = compare(program, library, work, what, 12000, settings)
            if not 100 < kept < 12000:
                sys.exit(f"{what}: {kept} kept: not what this is for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
