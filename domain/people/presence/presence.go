// Package presence tracks who has a record open, so that two operators do not unknowingly decide the same case
// (D-KYC-10). It warns and blocks no one: the write itself ensures that a decision is made once.
//
// The one idea: a person is present for a short time after each heartbeat. No sign-off is required, and nothing is
// stored.
//
// Start reading at Room.
package presence

import (
	"context"
	"slices"
	"time"
)

// Lifetime is how long a heartbeat counts. A client repeats it every ten seconds.
const Lifetime = 30 * time.Second

// maxPeople is the maximum number of people in a room.
const maxPeople = 100

// Person has a record open.
type Person struct {
	UserID, Name string
	Since        time.Time
	seen         time.Time
}

// Rooms holds one room for each record, the same one on all nodes.
type Rooms interface {
	// Say records that a person has the subject open, or leaves it, and returns the others who have it open, in order
	// of arrival. UNAVAILABLE, OVERLOADED.
	Say(ctx context.Context, subject string, p Person, leaves bool) ([]Person, error)
}

// Room holds the people who have one record open.
type Room struct{ people []Person }

// Say records that a person is present, or leaves, and returns the others in order of arrival. A full room records no
// new person.
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
	return slices.DeleteFunc(slices.Clone(r.people), func(o Person) bool { return o.UserID == p.UserID })
}

// Empty reports whether no one is present.
func (r *Room) Empty(now time.Time) bool {
	r.forget(now)
	return len(r.people) == 0
}

func (r *Room) forget(now time.Time) {
	r.people = slices.DeleteFunc(r.people, func(p Person) bool { return now.Sub(p.seen) >= Lifetime })
}
