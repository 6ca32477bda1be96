package intake

import (
	"context"
	"hash/maphash"
	"strings"
)

// names returns the names of a person, in the order email, phone number, external id; "" for none.
func (p *person) names() [3]string { return [3]string{p.account.Email, p.account.Phone, p.ExternalID} }

var nameFields = [3]string{"email", "phoneNumber", "externalId"}

// taken returns the names of a batch that accounts have.
func (s *Service) taken(ctx context.Context, all []*person) (nameSet, error) {
	var wanted [3][]string
	for _, p := range all {
		if p.Refused != "" || p.Other {
			continue
		}
		for i, name := range p.names() {
			if name != "" {
				wanted[i] = append(wanted[i], name)
			}
		}
	}
	have := newNameSet()
	found, err := s.Store.Taken(ctx, Names{Mails: wanted[0], Phones: wanted[1], ExternalIDs: wanted[2]})
	for i, list := range [3][]string{found.Mails, found.Phones, found.ExternalIDs} {
		for _, name := range list {
			have.add(i, name)
		}
	}
	return have, err
}

// divide divides a batch into people and refusals, and returns the notes of all others than the refused ones. inFile
// are the names of earlier lines; it receives those of the people.
func divide(all []*person, taken, inFile nameSet) (people []*person, refused []Refusal, notes []Note) {
	for _, p := range all {
		if p.Other {
			notes = p.note(notes)
			continue
		}
		why := p.Refused
		for i, name := range p.names() {
			if why == "" && name != "" && (taken.has(i, name) || inFile.has(i, name)) {
				why = nameFields[i] + " is already used by an account or an earlier line"
			}
		}
		if why != "" {
			refused = append(refused, Refusal{p.Line, why})
			continue
		}
		for i, name := range p.names() {
			if name != "" {
				inFile.add(i, name)
			}
		}
		people, notes = append(people, p), p.note(notes)
	}
	return people, refused, notes
}

func (p *person) note(notes []Note) []Note {
	if len(p.Notes) == 0 {
		return notes
	}
	return append(notes, Note{p.Line, strings.Join(p.Notes, "; ")})
}

// nameSet is a set of names of accounts by their hashes. A collision among millions has a chance below one in a
// million.
type nameSet struct {
	seed maphash.Seed
	set  map[uint64]struct{}
}

func newNameSet() nameSet { return nameSet{maphash.MakeSeed(), map[uint64]struct{}{}} }

func (n nameSet) key(kind int, name string) uint64 {
	return maphash.String(n.seed, nameFields[kind]+"\x00"+name)
}

func (n nameSet) add(kind int, name string) { n.set[n.key(kind, name)] = struct{}{} }

func (n nameSet) has(kind int, name string) bool {
	_, ok := n.set[n.key(kind, name)]
	return ok
}
