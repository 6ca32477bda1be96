package cluster

import (
	"fmt"
	"testing"
)

func members(ports ...int) (ms []Member) {
	for _, p := range ports {
		a := fmt.Sprintf("127.0.0.1:%d", p)
		ms = append(ms, Member{ID: a + "~1", Address: a})
	}
	return ms
}

func keys(n int) []identity {
	ks := make([]identity, n)
	for i := range ks {
		ks[i] = identity{"challenge", fmt.Sprintf("0198%08x-7000", i)}
	}
	return ks
}

// No node has more than 1.15 times the mean, even with addresses that differ in one digit. A join moves only the
// identities that the new node gets.
func TestRingIsEvenAndMovesLittle(t *testing.T) {
	const many = 60_000
	ks := keys(many)
	for _, n := range []int{3, 5} {
		for base := 7000; base < 7400; base += 50 {
			ports := make([]int, n+1)
			for i := range ports {
				ports[i] = base + i
			}
			before, after := newRing(members(ports[:n]...)), newRing(members(ports...))
			count, moved := map[string]int{}, 0
			for _, k := range ks {
				a, b := before.owner(k).ID, after.owner(k).ID
				count[a]++
				if a != b {
					moved++
					if b != after.seats[n].ID {
						t.Fatalf("%v moved between members that stayed", k)
					}
				}
			}
			for id, c := range count {
				if mean := many / n; float64(c) > 1.15*float64(mean) {
					t.Errorf("%s owns %d, the mean is %d", id, c, mean)
				}
			}
			if ideal := float64(many) / float64(n+1); float64(moved) > 1.1*ideal || float64(moved) < 0.9*ideal {
				t.Errorf("a join at %d nodes moved %d of %d keys, ideal %.0f", n, moved, many, ideal)
			}
		}
	}
}

func TestRingDoesNotDependOnOrder(t *testing.T) {
	a, b := newRing(members(1, 2, 3)), newRing(members(3, 1, 2))
	for _, k := range keys(1000) {
		if a.owner(k).ID != b.owner(k).ID || a.moved(b, k) {
			t.Fatalf("%v has two owners", k)
		}
	}
	if !a.same(b) {
		t.Error("one set of members, two rings")
	}
	if newRing(nil).owner(identity{"a", "b"}) != nil {
		t.Error("an empty ring has an owner")
	}
}

// A process that restarts on the address of a dead one takes its seat, in whatever order the members are learned. A new
// epoch moves the identities of its member.
func TestRestartTakesPlaceInRing(t *testing.T) {
	first, second := Member{ID: "a:1~1", Address: "a:1"}, Member{ID: "a:1~2", Address: "a:1"}
	for _, ms := range [][]Member{{first, second}, {second, first}} {
		if r := newRing(ms); len(r.seats) != 1 || !r.has(second.ID) {
			t.Errorf("%+v", r.seats)
		}
	}
	later := second
	later.Epoch++
	a, b := newRing([]Member{second}), newRing([]Member{later})
	if a.same(b) || !a.moved(b, identity{"a", "b"}) {
		t.Error("an epoch without effect")
	}
}
