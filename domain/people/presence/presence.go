// Package presence owns who has a record open at this moment, so that two operators do not decide the same case
// without knowing of each other (D-KYC-10). It warns and keeps nobody out: what may happen once is held by the write.
//
// The one idea: to be present is to have said so lately. Nobody has to say goodbye, and nothing is stored.
//
// Start reading at Room.
package presence

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Lifetime is how long a word of somebody counts; Beat is how often a client says it again.
const (
	Lifetime = 30 * time.Second
	Beat     = 10 * time.Second
)

// maxPeople bounds a room.
const maxPeople = 100

// Person has a record open.
type Person struct {
	UserID, Name string
	Since        time.Time
	seen         time.Time
}

// Rooms is where people meet: one room for each record, the same one on all nodes.
type Rooms interface {
	// Say notes that a person has the subject open, or leaves it, and returns who else has it open, the first one first.
	// UNAVAILABLE, OVERLOADED.
	Say(ctx context.Context, subject string, p Person, leaves bool) ([]Person, error)
}

// Room is who has one record open.
type Room struct{ people []Person }

// Say notes that a person is here, or leaves, and returns the others, the first one first. Of a room that is full
// nobody new is noted.
func (r *Room) Say(now time.Time, p Person, leaves bool) []Person {
	r.forget(now)
	i := slices.IndexFunc(r.people, func(o Person) bool { return o.UserID == p.UserID })
	switch {
	case leaves && i >= 0:
		r.people = slices.Delete(r.people, i, i+1)
	case leaves:
	case i >= 0:
		r.people[i].Name, r.people[i].seen = p.Name, now
	case len(r.people) < maxPeople:
		p.Since, p.seen = now, now
		r.people = append(r.people, p)
	}
	others := slices.DeleteFunc(slices.Clone(r.people), func(o Person) bool { return o.UserID == p.UserID })
	slices.SortStableFunc(others, func(a, b Person) int { return cmp.Compare(a.Since.UnixMilli(), b.Since.UnixMilli()) })
	return others
}

// Empty reports whether nobody is here any more.
func (r *Room) Empty(now time.Time) bool {
	r.forget(now)
	return len(r.people) == 0
}

func (r *Room) forget(now time.Time) {
	r.people = slices.DeleteFunc(r.people, func(p Person) bool { return now.Sub(p.seen) >= Lifetime })
}
