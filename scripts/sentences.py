#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds sentences of more than 25 words in texts (*.md, man/*.scd) and in comments of C (*.c, *.h).

sentences.py [--count] [FILE...]    default: all files that git knows

Prints FILE:LINE: N words: how the sentence begins; and at the end how many there are. With --count only totals per file.
Tables, code, headings, options of man pages and columns (text with several blanks in a row) hold no sentences. Always
exits with 0.
"""
import os
import re
import subprocess
import sys

MOST = 25
SHORT = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|Fig|Sec|No)\.$")


def sentences(lines):
    """(line number, words) of each sentence of one paragraph, given as (line number, text)."""
    at, words = 0, []
    text = "\n".join(text for _, text in lines)
    text = re.sub(r"`[^`]*`", lambda code: "\n" * code.group(0).count("\n") + "`code`", text)
    for number, line in zip((number for number, _ in lines), text.split("\n")):
        for word in line.split():
            if re.search(r"\w", word):
                at = at if words else number
                words.append(word)
            if words and re.search(r"[.!?][)\"'`*_\]]*$", word) and not SHORT.search(word):
                yield at, words
                words = []
    if words:
        yield at, words


def paragraphs(lines):
    """Lists of (line number, text). Blank lines, list items, tables, headings and columns separate them."""
    some = []
    for number, text in lines:
        bare = text.strip()
        item = re.match(r"([-*+]|\d+[.)])\s+", bare)
        columns = re.search(r"\S {2,}\S", bare.replace(".  ", ". "))
        option = re.match(r"\*(-|fdr |FDR_)", bare) or re.search(r"[.)*]\+\+$", bare)
        if item or not bare or bare[0] in "|[]#=<" or bare.startswith("ctest:") or columns or option:
            yield some
            some = []
            if item and not re.search(r"\S {2,}\S", bare[item.end():]):
                some = [(number, bare[item.end():])]
        else:
            some.append((number, bare))
    yield some


def text_lines(text):
    """The lines of a page, those of code blocks as blank ones."""
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        yield number, "" if code or fence else line


def comment_lines(text):
    """The lines of the comments of C; code between two comments counts as a blank line."""
    last = 0
    for found in re.finditer(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', text, re.S):
        comment = found.group(0)
        if comment[0] != "/":
            continue
        first = text.count("\n", 0, found.start()) + 1
        if comment[1] == "*" or text[last:found.start()].strip():
            yield first, ""
        last = found.end()
        body = comment[2:-2] if comment[1] == "*" else comment.lstrip("/")
        for number, line in enumerate(body.split("\n"), first):
            line = re.sub(r"^\s*\*+ ?", "", line)
            yield number, "" if line.startswith("   ") else line  # indented: an example


def long_sentences(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    lines = comment_lines(text) if path.endswith((".c", ".h")) else text_lines(text)
    for paragraph in paragraphs(lines):
        for number, words in sentences(paragraph):
            if len(words) > MOST:
                yield number, words


def main():
    names = sys.argv[1:]
    count = "--count" in names
    files = [name for name in names if name != "--count"]
    if not files:
        os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        files = subprocess.run(["git", "ls-files", "*.md", "man/*.scd", "*.c", "*.h"], check=True, text=True,
                               capture_output=True).stdout.split()
    total = 0
    for path in files:
        found = list(long_sentences(path))
        total += len(found)
        if count and found:
            print(f"{path}: {len(found)}")
        for number, words in [] if count else found:
            print(f"{path}:{number}: {len(words)} words: {' '.join(words[:8])} ...")
    print(f"{total} sentences of more than {MOST} words")


if __name__ == "__main__":
    main()
