"""Programs of several files in C, C++, Rust, Go and Python, and the changes that are planted in them."""

# ruff: noqa: E501 - the lines of programs have their own length
from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Expected = Literal["function", "shift", "nobody"]
"""What must be reported: the right function first; a cost shift and nobody to blame; nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program: its files, and how it is built and started."""

    language: str
    files: Mapping[str, str]
    build: str
    command: str = "{build}/main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """One change: texts that are replaced by others in a file, and the functions that are right answers."""

    program: Program
    kind: str
    edits: tuple[tuple[str, str, str], ...]
    right: tuple[str, ...] = ()
    expected: Expected = "function"

    def files(self) -> dict[str, str]:
        """Return the files after the change. Raises `ValueError` if a text to replace is missing."""
        files = dict(self.program.files)
        for name, old, new in self.edits:
            if old not in files[name]:
                raise ValueError(f"{self.program.language}, {self.kind}: {name} does not contain {old!r}")
            files[name] = files[name].replace(old, new)
        return files


C = Program(
    language="C",
    build="cc -O2 -g -fno-ipa-cp $(cat flags) -c sort.c && cc -O2 -g -pthread -o main main.c table.c parse.c log.c sort.o",
    files={
        "flags": "-O2\n",
        "all.h": """\
#include <stddef.h>
struct entry { unsigned key; long value; struct entry *next; };
struct entry *table_find(unsigned key);
void table_insert(unsigned key, long value);
long table_sum(void);
unsigned parse_number(const char **text);
long parse_all(const char *text);
void sort_keys(unsigned *keys, int count);
void log_line(const char *what, long value);
static inline unsigned mix(unsigned x) { x ^= x >> 16; x *= 0x45d9f3bu; x ^= x >> 16; x *= 0x45d9f3bu; return x ^ x >> 16; }
""",
        "table.c": """\
#include <pthread.h>
#include <stdlib.h>
#include "all.h"
#define SLOTS 4096
static struct entry *slots[SLOTS];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static long grid[256][256];
__attribute__((noinline)) struct entry *table_find(unsigned key) {
  for (struct entry *each = slots[mix(key) % SLOTS]; each; each = each->next)
    if (each->key == key) return each;
  return NULL;
}
__attribute__((noinline)) void table_insert(unsigned key, long value) {
  struct entry *found = table_find(key);
  if (!found) {
    found = malloc(sizeof *found);
    found->key = key; found->value = 0;
    found->next = slots[mix(key) % SLOTS];
    slots[mix(key) % SLOTS] = found;
  }
  found->value += value;
  grid[key % 256][value % 256] += value;
}
__attribute__((noinline)) long table_sum(void) {
  long sum = 0;
  for (int round = 0; round < 4; round++)
    for (int row = 0; row < 256; row++)
      for (int column = 0; column < 256; column++) sum += grid[row][column] * (round + 1);
  for (int slot = 0; slot < SLOTS; slot++) for (struct entry *each = slots[slot]; each; each = each->next) sum += each->value;
  return sum;
}
""",
        "parse.c": """\
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "all.h"
__attribute__((noinline)) unsigned parse_number(const char **text) {
  unsigned number = 0;
  while (**text >= '0' && **text <= '9') number = number * 10 + (unsigned)(*(*text)++ - '0');
  return number;
}
__attribute__((noinline)) long parse_all(const char *text) {
  long count = 0;
  while (*text) {
    unsigned key = parse_number(&text);
    while (*text == ' ' || *text == ',') text++;
    unsigned check = 0;
    for (int bit = 0; bit < 16; bit++) check = (check << 1) ^ ((check ^ key >> bit) & 1u ? 0x1021u : 0u);
    table_insert(key, (long)(check & 0xff));
    count++;
  }
  return count;
}
""",
        "sort.c": """\
#include <stdlib.h>
#include "all.h"
static void merge_part(unsigned *keys, unsigned *spare, int from, int to) {
  if (to - from < 2) return;
  int middle = (from + to) / 2, left = from, right = middle;
  merge_part(keys, spare, from, middle);
  merge_part(keys, spare, middle, to);
  for (int at = from; at < to; at++)
    spare[at] = left < middle && (right >= to || keys[left] <= keys[right]) ? keys[left++] : keys[right++];
  for (int at = from; at < to; at++) keys[at] = spare[at];
}
void sort_keys(unsigned *keys, int count) {
  unsigned *spare = malloc(sizeof *spare * (size_t)count);
  merge_part(keys, spare, 0, count);
  free(spare);
}
""",
        "log.c": """\
#include <stdio.h>
#include "all.h"
__attribute__((noinline)) void log_line(const char *what, long value) {
  printf("%s %ld\\n", what, value);
}
""",
        "main.c": """\
#include <stdio.h>
#include <stdlib.h>
#include "all.h"
static char text[400000];
__attribute__((noinline)) long run_queries(int count) {
  long sum = 0;
  for (int query = 0; query < count; query++) {
    struct entry *found = table_find((unsigned)query * 7u % 9000u);
    if (found) sum += found->value;
  }
  return sum;
}
int main(void) {
  char *end = text;
  for (int word = 0; word < 30000; word++) end += sprintf(end, "%d, ", word * 31 % 8000);
  long count = parse_all(text);
  unsigned *keys = malloc(sizeof *keys * 8000);
  for (int at = 0; at < 8000; at++) keys[at] = mix((unsigned)at);
  sort_keys(keys, 8000);
  for (int line = 0; line < 800; line++) log_line("count", count + line);
  log_line("sum", run_queries(60000) + table_sum() + (long)keys[17]);
  return 0;
}
""",
    },
)

CPP = Program(
    language="C++",
    build="c++ -std=c++17 -O2 -g $(cat flags) -c graph.cc && c++ -std=c++17 -O2 -g -pthread -o main main.cc graph.o text.cc",
    files={
        "flags": "\n",
        "all.h": """\
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
namespace app {
struct Point { double x, y; int kind; };
class Graph {
 public:
  explicit Graph(int size);
  void connect(int from, int to);
  long reach(int from) const;
  double length(const std::vector<Point> &points) const;
 private:
  std::vector<std::vector<int>> edges_;
};
std::vector<std::string> split(const std::string &text);
std::unordered_map<std::string, int> count_words(const std::vector<std::string> &words);
std::string join(const std::vector<std::string> &words);
std::vector<std::string> top(const std::unordered_map<std::string, int> &counts, int count);
inline double square(double x) { return x * x + 0.5 * x; }
}
""",
        "graph.cc": """\
#include "all.h"
#include <cmath>
#include <mutex>
namespace app {
Graph::Graph(int size) : edges_(size) {}
void Graph::connect(int from, int to) { edges_[from].push_back(to); }
long Graph::reach(int from) const {
  std::vector<char> seen(edges_.size());
  std::vector<int> open{from};
  long found = 0;
  while (!open.empty()) {
    int node = open.back();
    open.pop_back();
    if (seen[node]) continue;
    seen[node] = 1;
    found++;
    for (int next : edges_[node]) if (!seen[next]) open.push_back(next);
  }
  return found;
}
double Graph::length(const std::vector<Point> &points) const {
  double sum = 0;
  for (size_t from = 0; from < edges_.size(); from++)
    for (int to : edges_[from]) {
      double dx = points[from].x - points[to].x, dy = points[from].y - points[to].y;
      sum += std::sqrt(square(dx) + square(dy) + 9.0);
    }
  return sum;
}
}
""",
        "text.cc": """\
#include "all.h"
#include <algorithm>
namespace app {
std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> words;
  words.reserve(text.size() / 4);
  std::string word;
  for (char letter : text) {
    if (letter == ' ') { words.push_back(word); word.clear(); }
    else word += letter;
  }
  return words;
}
std::unordered_map<std::string, int> count_words(const std::vector<std::string> &words) {
  std::unordered_map<std::string, int> counts;
  for (const auto &word : words) counts[word]++;
  return counts;
}
std::string join(const std::vector<std::string> &words) {
  std::string joined;
  for (const auto &word : words) { joined += word; joined += '-'; }
  return joined;
}
std::vector<std::string> top(const std::unordered_map<std::string, int> &counts, int count) {
  std::vector<std::pair<int, std::string>> rows;
  for (const auto &[word, number] : counts) rows.emplace_back(-number, word);
  std::partial_sort(rows.begin(), rows.begin() + count, rows.end());
  std::vector<std::string> found;
  for (int at = 0; at < count; at++) found.push_back(rows[at].second);
  return found;
}
}
""",
        "main.cc": """\
#include "all.h"
#include <fstream>
#include <iostream>
static void report(const std::vector<std::string> &lines) {
  std::ofstream out("/dev/null");
  for (const auto &line : lines) out << line << '\\n';
}
int main() {
  std::string text;
  for (int word = 0; word < 20000; word++) text += "w" + std::to_string(word * 17 % 900) + ' ';
  auto words = app::split(text);
  auto counts = app::count_words(words);
  std::string joined = app::join(words);
  app::Graph graph(3000);
  std::vector<app::Point> points;
  for (int node = 0; node < 3000; node++) {
    points.push_back({node * 0.5, node * 0.25, node});
    for (int edge = 1; edge < 6; edge++) graph.connect(node, (node * edge + 7) % 3000);
  }
  long reached = 0;
  for (int from = 0; from < 8; from++) reached += graph.reach(from);
  double length = 0;
  for (int round = 0; round < 6; round++) length += graph.length(points);
  report(words);
  std::cout << counts.size() << joined.size() << reached << length << app::top(counts, 20).size() << '\\n';
}
""",
    },
)

RUST = Program(
    language="Rust",
    build="rustc --edition 2021 -O -g -o main main.rs",
    files={
        "main.rs": """\
mod index;
mod lexer;
mod stats;
use std::io::Write;
fn report(lines: &[String]) {
    let mut out = std::io::BufWriter::new(std::fs::File::create("/dev/null").unwrap());
    for line in lines { writeln!(out, "{line}").unwrap(); }
}
fn main() {
    let text: String = (0..20000u64).map(|n| format!("name{} = {};\\n", n * 13 % 700, n * 7 % 97)).collect();
    let tokens = lexer::tokens(&text);
    let mut index = index::Index::new();
    for token in &tokens { index.add(token); }
    let mut found = 0;
    for n in 0..9000u64 { found += index.find(&format!("name{}", n % 800)); }
    let values: Vec<f64> = (0..50000u64).map(|n| (n * 7919 % 10007) as f64).collect();
    let spread = stats::spread(&values);
    let middle = stats::median(&values);
    report(&tokens);
    println!("{found} {spread} {middle} {}", tokens.len());
}
""",
        "lexer.rs": """\
#[inline(never)]
pub fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::with_capacity(text.len() / 4);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        rest = &rest[start..];
        let end = word_end(rest);
        found.push(rest[..end].to_string());
        rest = &rest[end..];
    }
    found
}
#[inline]
fn word_end(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut end = 1;
    while end < bytes.len() && bytes[end].is_ascii_alphanumeric() && bytes[0].is_ascii_alphanumeric() { end += 1; }
    end
}
""",
        "index.rs": """\
use std::collections::HashMap;
pub struct Index { rows: HashMap<String, u64>, total: std::sync::Mutex<u64> }
impl Index {
    pub fn new() -> Self { Index { rows: HashMap::new(), total: std::sync::Mutex::new(0) } }
    #[inline(never)]
    pub fn add(&mut self, token: &str) {
        if let Some(count) = self.rows.get_mut(token) { *count += 1; }
        else { self.rows.insert(token.to_string(), 1); }
    }
    #[inline(never)]
    pub fn find(&self, token: &str) -> u64 {
        *self.rows.get(token).unwrap_or(&0) + (*self.total.lock().unwrap() & 1)
    }
}
""",
        "stats.rs": """\
#[inline(never)]
pub fn mean(values: &[f64]) -> f64 { values.iter().sum::<f64>() / values.len() as f64 }
#[inline(never)]
pub fn spread(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| square(v - centre)).sum::<f64>() / values.len() as f64
}
#[inline]
fn square(x: f64) -> f64 { x * x }
#[inline(never)]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.total_cmp(b));
    sorted[sorted.len() / 2]
}
""",
    },
)

GO = Program(
    language="Go",
    build="GOCACHE=$PWD/.cache GOFLAGS=-mod=mod GOTOOLCHAIN=local go build $(cat flags) -o main .",
    files={
        "flags": "\n",
        "go.mod": "module planted\n\ngo 1.20\n",
        "main.go": """\
package main

import "fmt"

func main() {
	words := makeWords(6000)
	store := newStore()
	total := 0
	for round := 0; round < 160; round++ {
		store.fill(words)
		total += store.query(words)
		total += checksum(words)
		total += len(render(words[:1500]))
		total += int(smooth(round))
	}
	fmt.Println(total)
}
""",
        "store.go": """\
package main

import "sync"

type store struct {
	rows  map[string]int
	guard sync.Mutex
}

func newStore() *store { return &store{rows: map[string]int{}} }

//go:noinline
func (s *store) fill(words []string) {
	for at, word := range words {
		s.rows[word] = at
	}
}

//go:noinline
func (s *store) query(words []string) int {
	found := 0
	for _, word := range words {
		found += s.rows[word]
	}
	return found
}
""",
        "text.go": """\
package main

import (
	"strconv"
	"strings"
)

func makeWords(count int) []string {
	words := make([]string, count)
	for at := range words {
		words[at] = "word" + strconv.Itoa(at*31%count)
	}
	return words
}

//go:noinline
func checksum(words []string) int {
	sum := uint32(7)
	for _, word := range words {
		for at := 0; at < len(word); at++ {
			sum = sum*33 + uint32(word[at])
		}
	}
	return int(sum & 0xff)
}

//go:noinline
func render(words []string) string {
	var out strings.Builder
	for _, word := range words {
		out.WriteString(word)
		out.WriteByte(',')
	}
	return out.String()
}
""",
        "grid.go": """\
package main

var grid [512][512]float64

//go:noinline
func smooth(round int) float64 {
	sum := 0.0
	for row := 0; row < 512; row++ {
		for column := 0; column < 512; column++ {
			sum += grid[row][column] + float64(round)
		}
	}
	return sum
}
""",
    },
)

PYTHON = Program(
    language="Python",
    build="true",
    command=f"{sys.executable} {{build}}/main.py",  # not a shim of a version manager: it starts many processes
    files={
        "main.py": """\
import index
import report
import text


def main():
    words = text.words(6000)
    found = index.Index()
    for word in words:
        found.add(word)
    hits = sum(found.find(word) for word in words)
    ranked = report.ranked(found)
    lines = report.render(ranked)
    report.write(lines)
    print(hits, len(lines), text.checksum(words))


main()
""",
        "text.py": """\
def words(count):
    return [normal("Word%d" % (n * 31 % 900)) for n in range(count)]


def normal(word):
    return word.strip().lower()


def checksum(words):
    total = 0
    for word in words:
        total = (total * 33 + len(word) + ord(word[-1])) & 0xFFFFFFFF
    return total
""",
        "index.py": """\
class Index:
    def __init__(self):
        self.rows = {}
        self.order = []

    def add(self, word):
        if word in self.rows:
            self.rows[word] += 1
        else:
            self.rows[word] = 1
            self.order.append(word)

    def find(self, word):
        return self.rows.get(word, 0)
""",
        "report.py": """\
import os


def ranked(index):
    return sorted(index.rows.items(), key=lambda row: (-row[1], row[0]))


def render(rows):
    lines = []
    for word, count in rows:
        for copy in range(5):
            lines.append("%s %d %d" % (word, count, copy))
    return lines


def write(lines):
    with open(os.devnull, "w") as out:
        for line in lines:
            out.write(line + "\\n")
""",
    },
)

PLANTS = (
    Plant(program=C, kind="algorithm: list instead of hash table", right=("table_find",), edits=(
        ("table.c", "slots[mix(key) % SLOTS]; each; each", "slots[mix(key) % 16]; each; each"),
        ("table.c", "found->next = slots[mix(key) % SLOTS];", "found->next = slots[mix(key) % 16];"),
        ("table.c", "    slots[mix(key) % SLOTS] = found;", "    slots[mix(key) % 16] = found;"))),
    Plant(program=C, kind="algorithm: insertion sort", right=("sort_keys",), edits=(
        ("sort.c", "  merge_part(keys, spare, 0, count);", """\
  for (int at = 1; at < count / 8; at++) {
    unsigned key = keys[at]; int to = at;
    while (to > 0 && keys[to - 1] > key) { keys[to] = keys[to - 1]; to--; }
    keys[to] = key;
  }
  merge_part(keys, spare, 0, count);"""),)),
    Plant(program=C, kind="algorithm: more calls", right=("run_queries",), edits=(
        ("main.c", "    if (found) sum += found->value;",
         "    for (unsigned near = 1; near < 6; near++) if (table_find((unsigned)query + near)) sum++;\n"
         "    if (found) sum += found->value;"),)),
    Plant(program=C, kind="allocation for each number", right=("parse_number",), edits=(
        ("parse.c", "  unsigned number = 0;\n",
         "  unsigned number = 0;\n  char *volatile copy = malloc(64); memset(copy, **text, 64); number = copy[9] == 1; free(copy);\n"),)),
    Plant(program=C, kind="lock", right=("table_insert",), edits=(
        ("table.c", "  struct entry *found = table_find(key);\n",
         "  pthread_mutex_lock(&guard);\n  struct entry *found = table_find(key);\n"),
        ("table.c", "  found->value += value;", "  pthread_mutex_unlock(&guard);\n  found->value += value;"))),
    Plant(program=C, kind="cache layout: by columns", right=("table_sum",), edits=(
        ("table.c", "sum += grid[row][column] * (round + 1);", "sum += grid[column][row] * (round + 1);"),)),
    Plant(program=C, kind="inlining lost", right=("mix", "table_find"), edits=(
        ("all.h", "static inline unsigned mix", "__attribute__((noinline)) static unsigned mix"),)),
    Plant(program=C, kind="moved to another function", expected="shift", right=("parse_all", "check_bits"), edits=(
        ("parse.c", "    unsigned check = 0;\n    for (int bit = 0; bit < 16; bit++) check = (check << 1) ^ "
         "((check ^ key >> bit) & 1u ? 0x1021u : 0u);\n", "    unsigned check = check_bits(key);\n"),
        ("parse.c", "__attribute__((noinline)) long parse_all", """\
__attribute__((noinline)) static unsigned check_bits(unsigned key) {
  unsigned check = 0;
  for (int bit = 0; bit < 16; bit++) check = (check << 1) ^ ((check ^ key >> bit) & 1u ? 0x1021u : 0u);
  return check;
}
__attribute__((noinline)) long parse_all"""))),
    Plant(program=C, kind="renamed", expected="shift", right=("table_find", "table_lookup"), edits=tuple(
        (name, "table_find", "table_lookup") for name in ("all.h", "table.c", "main.c"))),
    Plant(program=C, kind="I/O: flush of each line", right=("log_line",), edits=(
        ("log.c", "value);\n}", "value);\n  fflush(stdout);\n}"),)),
    Plant(program=C, kind="flag: no optimisation of one file", right=("merge_part",), edits=(
        ("flags", "-O2", "-O0"),)),
    Plant(program=C, kind="only the layout", expected="nobody", edits=(
        ("table.c", "#define SLOTS", "char unused_space[777] = {1};\nint unused_code(int x) { return x * 7 + unused_space[x & 511] / 3; }\n#define SLOTS"),)),
    Plant(program=CPP, kind="algorithm: ordered map", right=("app::count_words",), edits=(
        ("text.cc", "  std::unordered_map<std::string, int> counts;\n  for (const auto &word : words) counts[word]++;\n  return counts;",
         "  std::map<std::string, int> counts;\n  for (const auto &word : words) counts[word]++;\n  return {counts.begin(), counts.end()};"),)),
    Plant(program=CPP, kind="algorithm: checks on insertion", right=("app::Graph::reach",), edits=(
        ("graph.cc", "if (!seen[next]) open.push_back(next);", "{ bool there = false; for (int each : open) there |= each == next; if (!there) open.push_back(next); }"),)),
    Plant(program=CPP, kind="allocation: copies", right=("app::join",), edits=(
        ("text.cc", "{ joined += word; joined += '-'; }", "joined += std::string(40, '.').substr(0, 0) + word + std::string(\"-\");"),)),
    Plant(program=CPP, kind="allocation: copies of arguments", right=("app::count_words",), edits=(
        ("text.cc", "for (const auto &word : words) counts[word]++;", "for (auto word : words) { auto key = word + std::string(30, 'x'); counts[word] += key.size() > 3; }"),)),
    Plant(program=CPP, kind="lock", right=("app::Graph::connect",), edits=(
        ("graph.cc", "void Graph::connect(int from, int to) {", "static std::mutex guard;\nvoid Graph::connect(int from, int to) { std::lock_guard<std::mutex> held(guard); std::lock_guard<std::mutex> *again = nullptr; (void)again; "),)),
    Plant(program=CPP, kind="cache layout: large points", right=("app::Graph::length", "main"), edits=(
        ("all.h", "struct Point { double x, y; int kind; };", "struct Point { double x, y; int kind; char note[1000]; };"),)),
    Plant(program=CPP, kind="inlining lost", right=("app::square", "app::Graph::length"), edits=(
        ("all.h", "inline double square", "__attribute__((noinline)) inline double square"),)),
    Plant(program=CPP, kind="moved to another function", expected="shift", right=("app::split", "app::add_letter"), edits=(
        ("text.cc", "    if (letter == ' ') { words.push_back(word); word.clear(); }\n    else word += letter;\n", "    add_letter(words, word, letter);\n"),
        ("text.cc", "std::vector<std::string> split", "__attribute__((noinline)) static void add_letter(std::vector<std::string> &words, std::string &word, char letter) {\n  if (letter == ' ') { words.push_back(word); word.clear(); }\n  else word += letter;\n}\nstd::vector<std::string> split"))),
    Plant(program=CPP, kind="I/O: flush of each line", right=("report",), edits=(
        ("main.cc", "out << line << '\\n';", "out << line << std::endl;"),)),
    Plant(program=CPP, kind="flag: no optimisation of one file", right=("app::Graph::reach", "app::Graph::length"), edits=(
        ("flags", "\n", "-O0\n"),)),
    Plant(program=RUST, kind="algorithm: list instead of hash map", right=("index::Index>::find", "Index::find"), edits=(
        ("index.rs", "*self.rows.get(token).unwrap_or(&0) +", "self.rows.iter().find(|(key, _)| key.as_str() == token).map(|(_, count)| *count).unwrap_or(0) +"),)),
    Plant(program=RUST, kind="allocation for each token", right=("index::Index>::add", "Index::add"), edits=(
        ("index.rs", "if let Some(count) = self.rows.get_mut(token) { *count += 1; }\n        else { self.rows.insert(token.to_string(), 1); }", "*self.rows.entry(token.to_string()).or_insert(0) += 1;"),)),
    Plant(program=RUST, kind="allocation: text copied", right=("lexer::tokens",), edits=(
        ("lexer.rs", "found.push(rest[..end].to_string());", "let letters: Vec<char> = rest[..end].chars().collect();\n        found.push(letters.into_iter().collect());"),)),
    Plant(program=RUST, kind="algorithm: sorted twice", right=("stats::median",), edits=(
        ("stats.rs", "    sorted[sorted.len() / 2]", "    sorted.sort_by(|a, b| (b % 1000.0).total_cmp(&(a % 1000.0)));\n    sorted.sort_by(|a, b| a.total_cmp(b));\n    sorted[sorted.len() / 2]"),)),
    Plant(program=RUST, kind="lock", right=("index::Index>::find", "Index::find"), edits=(
        ("index.rs", "+ (*self.total.lock().unwrap() & 1)", "+ (0..6).map(|n| *self.total.lock().unwrap() & n & 1).sum::<u64>()"),)),
    Plant(program=RUST, kind="inlining lost", right=("word_end", "tokens"), edits=(
        ("lexer.rs", "#[inline]\nfn word_end", "#[inline(never)]\nfn word_end"),)),
    Plant(program=RUST, kind="I/O: no buffer", right=("report",), edits=(
        ("main.rs", "std::io::BufWriter::new(std::fs::File::create(\"/dev/null\").unwrap())", "std::fs::File::create(\"/dev/null\").unwrap()"),)),
    Plant(program=RUST, kind="cache layout: values in boxes", right=("stats::median",), edits=(
        ("stats.rs", "let mut sorted = values.to_vec();", "let mut sorted: Vec<Box<f64>> = values.iter().map(|value| Box::new(*value)).collect();"),
        ("stats.rs", "    sorted[sorted.len() / 2]", "    *sorted[sorted.len() / 2]"))),
    Plant(program=RUST, kind="renamed", expected="shift", right=("tokens", "words"), edits=(
        ("lexer.rs", "pub fn tokens", "pub fn words"), ("main.rs", "lexer::tokens", "lexer::words"))),
    Plant(program=GO, kind="algorithm: repeated hashing", right=("query",), edits=(
        ("store.go", "		found += s.rows[word]\n", "		for try := 0; try < 4; try++ {\n			found += s.rows[word]\n		}\n"),)),
    Plant(program=GO, kind="allocation for each word", right=("checksum",), edits=(
        ("text.go", "		for at := 0; at < len(word); at++ {\n			sum = sum*33 + uint32(word[at])\n		}\n", "		for _, letter := range []byte(word + word[:1])[:len(word)] {\n			sum = sum*33 + uint32(letter)\n		}\n		sum += uint32(len(string([]rune(word))))\n"),)),
    Plant(program=GO, kind="lock", right=("fill",), edits=(
        ("store.go", "		s.rows[word] = at\n", "		for try := 0; try < 3; try++ {\n			s.guard.Lock()\n			s.guard.Unlock()\n		}\n		s.rows[word] = at\n"),)),
    Plant(program=GO, kind="cache layout: by columns", right=("smooth",), edits=(
        ("grid.go", "grid[row][column]", "grid[column][row]"),)),
    Plant(program=GO, kind="algorithm: text added up", right=("render",), edits=(
        ("text.go", "	var out strings.Builder\n	for _, word := range words {\n		out.WriteString(word)\n		out.WriteByte(',')\n	}\n	return out.String()", "	out := \"\"\n	for _, word := range words[:700] {\n		out += word + \",\"\n	}\n	_ = strings.Count\n	return out"),)),
    Plant(program=GO, kind="I/O: a write for each word", right=("render",), edits=(
        ("text.go", "		out.WriteByte(',')\n", "		out.WriteByte(',')\n		sink.WriteString(word)\n"),
        ("text.go", "//go:noinline\nfunc render", "var sink, _ = os.Create(os.DevNull)\n\n//go:noinline\nfunc render"),
        ("text.go", "import (\n", "import (\n	\"os\"\n"))),
    Plant(program=GO, kind="a function that is not inlined", right=("checksum", "step"), edits=(
        ("text.go", "			sum = sum*33 + uint32(word[at])\n", "			sum = step(sum, word[at])\n"),
        ("text.go", "//go:noinline\nfunc checksum", "//go:noinline\nfunc step(sum uint32, letter byte) uint32 { return sum*33 + uint32(letter) }\n\n//go:noinline\nfunc checksum"))),
    Plant(program=PYTHON, kind="algorithm: list instead of dict", right=("Index.add", "add"), edits=(
        ("index.py", "if word in self.rows:", "if word in self.order:"),)),
    Plant(program=PYTHON, kind="algorithm: more calls", right=("words",), edits=(
        ("text.py", "return [normal(\"Word%d\" % (n * 31 % 900)) for n in range(count)]", "return [normal(normal(normal(normal(\"Word%d\" % (n * 31 % 900))))) for n in range(count)]"),)),
    Plant(program=PYTHON, kind="allocation: copies", right=("Index.find", "find"), edits=(
        ("index.py", "return self.rows.get(word, 0)", "return dict(self.rows).get(word, 0)"),)),
    Plant(program=PYTHON, kind="lock", right=("Index.find", "find"), edits=(
        ("index.py", "return self.rows.get(word, 0)", "with self.guard:\n            with self.guard:\n                with self.guard:\n                    return self.rows.get(word, 0)"),
        ("index.py", "        self.rows = {}", "        self.rows = {}\n        self.guard = threading.RLock()"),
        ("index.py", "class Index:", "import threading\n\n\nclass Index:"))),
    Plant(program=PYTHON, kind="I/O: flush of each line", right=("write",), edits=(
        ("report.py", "out.write(line + \"\\n\")", "out.write(line + \"\\n\")\n            out.flush()"),)),
    Plant(program=PYTHON, kind="algorithm: sorting in a loop", right=("render",), edits=(
        ("report.py", "        for copy in range(5):", "        for copy in range(len(sorted(rows)[:5])):"),)),
    Plant(program=PYTHON, kind="algorithm: an exception instead of a test", right=("Index.add", "add"), edits=(
        ("index.py", "        if word in self.rows:\n            self.rows[word] += 1\n        else:\n", "        try:\n            if self.rows[word] >= 0:\n                raise IndexError(word)\n        except IndexError:\n            self.rows[word] += 1\n        except KeyError:\n"),)),
    Plant(program=PYTHON, kind="moved to another function", expected="shift", right=("checksum", "step"), edits=(
        ("text.py", "        total = (total * 33 + len(word) + ord(word[-1])) & 0xFFFFFFFF\n    return total", "        total = total\n    return step(words)\n\n\ndef step(words):\n    total = 0\n    for word in words:\n        total = (total * 33 + len(word) + ord(word[-1])) & 0xFFFFFFFF\n    return total"),)),
)  # fmt: skip
"""The changes, one after another in each program."""
