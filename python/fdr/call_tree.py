# SPDX-License-Identifier: MIT
"""The call tree: calls summed up by their path."""
from .columns import calls, np, sums


class Node:
    """One call path. children: in order of their time, longest first."""

    def __init__(self, name, region):
        self.name, self.region = name, region
        self.calls, self.inclusive_ns, self.exclusive_ns = 0, 0, 0
        self.children = []

    def __repr__(self):
        return f"<{self.name or 'root'}: {self.calls} calls, {self.inclusive_ns} ns>"

    def walk(self, path=()):
        """(path, node) of all nodes below, callers first."""
        for child in self.children:
            yield path + (child.name,), child
            yield from child.walk(path + (child.name,))

    def text(self, least=0.0, indent=0):
        """The tree as lines, without paths that took less than this part of all."""
        total = self.inclusive_ns or 1
        lines = []
        for path, node in self.walk():
            if node.inclusive_ns >= least * total:
                lines.append(f"{node.inclusive_ns / total:7.2%} {node.calls:>12,}  {'  ' * (len(path) - 1 + indent)}{node.name}")
        return "\n".join(lines)


def _numbers(k):
    """The number of the path of each call, and (number, number of the caller's path, region) of each path. 0: the root."""
    number, paths, next_one = np.zeros(k.rows, np.int64), [], 1
    order = np.argsort(k.depth, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(k.depth[order])) + 1) if k.rows else []
    for own in levels:
        above = np.where(k.parent[own] >= 0, number[k.parent[own]], 0)
        keys, which = np.unique(np.stack([above, k.region[own].astype(np.int64)]), axis=1, return_inverse=True)
        number[own] = next_one + which.reshape(-1)
        paths += [(next_one + i, int(up), int(region)) for i, (up, region) in enumerate(keys.T)]
        next_one += keys.shape[1]
    return number, paths


def tree(recording, **select):
    k, regions = calls(recording, **select), recording.regions
    number, paths = _numbers(k)
    known = k.duration_ns >= 0
    size = len(paths) + 1
    count = np.bincount(number, minlength=size)
    inclusive, exclusive = (sums(number[known], k[n][known], size) for n in ("duration_ns", "exclusive_ns"))
    nodes = [Node("", 0)]
    for i, above, region in paths:
        node = Node(regions[region].name if region else "[not kept]", region)
        node.calls, node.inclusive_ns, node.exclusive_ns = int(count[i]), int(inclusive[i]), int(exclusive[i])
        nodes.append(node)
        nodes[above].children.append(node)
    for node in reversed(nodes):
        if not node.region:  # made-up callers last as long as what they hold
            node.inclusive_ns = sum(child.inclusive_ns for child in node.children)
        node.children.sort(key=lambda child: -child.inclusive_ns)
    nodes[0].calls = 0
    return nodes[0]
