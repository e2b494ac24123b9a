#!/usr/bin/env python3
"""Draws docs/pipeline.svg: the stages a program goes through, one row each."""

import pathlib

STAGES = [
    (
        "program",
        "a C++ function, a torch::nn module, a TorchScript module, a Python function or module",
        "edge",
    ),
    ("trace", "run once on tensors without data: every operator call is recorded", "stage"),
    ("aot", "differentiated into one joint graph; what is written and shared becomes a contract", "stage"),
    ("passes", "decompositions, constants, common subexpressions, dead code", "stage"),
    ("partition", "split into a forward and a backward; what passes between them is saved", "stage"),
    ("backends", "each graph becomes an executable: eager, debug, or your own", "stage"),
    ("runtime", "signature check, forward, autograd node, backward, write-back", "stage"),
    ("compiled", "called and trained like the original: same results, parameters and optimisers", "edge"),
]
WIDTH, HEIGHT, GAP, LEFT, NAME = 900, 46, 20, 20, 130
FILL = {"edge": "#f3f0e8", "stage": "#dce9f5"}


def row(index, name, text, kind):
    y = 20 + index * (HEIGHT + GAP)
    parts = [
        f'<rect x="{LEFT}" y="{y}" width="{WIDTH - 2 * LEFT}" height="{HEIGHT}" rx="8" '
        f'fill="{FILL[kind]}" stroke="#5b7389"/>',
        f'<text x="{LEFT + 16}" y="{y + 29}" font-weight="bold">{name}</text>',
        f'<text x="{LEFT + NAME}" y="{y + 29}">{text}</text>',
    ]
    if index + 1 < len(STAGES):
        top, bottom, middle = y + HEIGHT, y + HEIGHT + GAP, WIDTH // 2
        parts.append(f'<path d="M{middle} {top} V{bottom - 6}" stroke="#5b7389" stroke-width="2"/>')
        parts.append(f'<path d="M{middle - 6} {bottom - 8} h12 l-6 8 z" fill="#5b7389"/>')
    return parts


def main():
    height = 40 + len(STAGES) * (HEIGHT + GAP) - GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="16" fill="#1d2b36">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for index, stage in enumerate(STAGES):
        lines += row(index, *stage)
    target = pathlib.Path(__file__).resolve().parent.parent / "docs" / "pipeline.svg"
    target.write_text("\n".join(lines + ["</svg>"]) + "\n")


main()
