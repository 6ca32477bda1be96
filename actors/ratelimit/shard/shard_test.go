package shard

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

var phaseNames = []string{"unknown", "following", "acting", "acted", "stopped", "owning"}

// TestPhases compares the table of transitions in README.md with the code.
func TestPhases(t *testing.T) {
	events := map[string]func(p *Shard){
		"act":        func(p *Shard) { p.act() },
		"stop":       (*Shard).stop,
		"own":        func(p *Shard) { p.own("b") },
		"give":       func(p *Shard) { p.give("b", false) },
		"incomplete": (*Shard).incomplete,
		"lapse":      (*Shard).lapse,
		"beginTerm":  (*Shard).beginTerm,
		"endState":   func(p *Shard) { p.endState("b", 7) },
	}
	text := storetest.Value(os.ReadFile("README.md"))(t)
	_, table, _ := strings.Cut(string(text), "## Transitions")
	var columns []string
	tried := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 1+len(events) {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] == "phase" {
			columns = cells
			continue
		}
		from := -1
		for i, name := range phaseNames {
			if name == cells[0] {
				from = i
			}
		}
		if from < 0 {
			continue
		}
		for i, want := range cells[1:] {
			event := events[columns[i+1]]
			if event == nil {
				t.Fatalf("no event %q", columns[i+1])
			}
			p := Shard{phase: phase(from), number: 3 << termShift}
			if columns[i+1] == "beginTerm" || columns[i+1] == "endState" {
				if (want == "") != p.refusesOwner() {
					t.Errorf("%s refuses an owner: %v", cells[0], p.refusesOwner())
				}
			}
			if want == "" {
				continue
			}
			if want == "-" {
				want = cells[0]
			}
			event(&p)
			if got := phaseNames[p.phase]; got != want {
				t.Errorf("%s in phase %s leads to %s, README.md says %s", columns[i+1], cells[0], got, want)
			}
			tried++
		}
	}
	storetest.Equal(t, tried, 41, "transitions in README.md")
}

// TestMessages compares the table of messages in README.md with the code.
func TestMessages(t *testing.T) {
	text := storetest.Value(os.ReadFile("README.md"))(t)
	_, table, _ := strings.Cut(string(text), "|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		documented[strings.TrimSpace(strings.Split(line, "|")[1])] = true
	}
	files, _ := filepath.Glob("*.go")
	step := regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?(\w+)\) step\(`)
	n := 0
	for _, name := range files {
		code := storetest.Value(os.ReadFile(name))(t)
		for _, m := range step.FindAllSubmatch(code, -1) {
			if n++; !documented[string(m[1])] {
				t.Errorf("README.md does not describe %s", m[1])
			}
		}
	}
	storetest.Equal(t, n, len(documented), "README.md describes", "messages, there are")
}

// TestTerms: each node that begins to decide has its own term.
func TestTerms(t *testing.T) {
	owner := Shard{number: 5<<termShift + 17}
	owner.own("b")
	follower := Shard{phase: following, number: owner.number + 4}
	if !follower.act() || termOf(follower.number) <= termOf(owner.number) {
		t.Errorf("a replica acts in term %d of an owner in term %d", termOf(follower.number), termOf(owner.number))
	}
	next := Shard{number: max(owner.number, follower.number)}
	if next.own(""); termOf(next.number) <= termOf(follower.number) {
		t.Errorf("an owner begins term %d behind a replica's %d", termOf(next.number), termOf(follower.number))
	}
	for _, p := range []phase{unknown, acted, stopped, owning} {
		if x := (Shard{phase: p}); x.act() {
			t.Errorf("%s acts", phaseNames[p])
		}
	}
}

// TestUnreplicated: a full list reports that there are more admissions. Those of an earlier term are not listed: they
// would count twice when a replica's state is adopted.
func TestUnreplicated(t *testing.T) {
	p := Shard{phase: owning}
	for range maxRemembered {
		p.noteUnreplicated(&Update{})
	}
	if p.unlisted || len(p.unreplicated) != maxRemembered {
		t.Fatalf("%d listed, more: %v", len(p.unreplicated), p.unlisted)
	}
	if p.noteUnreplicated(&Update{}); !p.unlisted || p.unreplicated != nil || p.known() == p.number {
		t.Errorf("%d listed, more: %v, known %d", len(p.unreplicated), p.unlisted, p.known())
	}
	if p.replicated(); p.hasUnreplicated() {
		t.Error("something is unreplicated")
	}
	before := p.number
	p.own("b")
	if p.Step(Unreplicated{&Update{Number: before}}, 0, nil); p.hasUnreplicated() {
		t.Error("an admission of an earlier term is unreplicated")
	}
	if p.Step(Unreplicated{&Update{Number: p.number}}, 0, nil); !p.hasUnreplicated() {
		t.Error("an admission of this term is not")
	}
}
