// Package addressbook manages the withdrawal address book of a user (sections 2.10 and 4.18 of the interface). A book
// has up to twenty named addresses, each on a pair of currency and network that is enabled for withdrawals.
//
// The one idea: a user's entries are read while the book is locked. So the rules over the whole book (unique names and
// addresses, at most twenty entries) are pure functions of a Book, and hold under concurrent calls. Database
// constraints enforce them as well.
//
// Start reading at Book, then Service in service.go, which checks in the order of the documented errors (decision
// D-WAD-03). Package address validates the addresses of a network. Implements D-WAD-01…08.
package addressbook

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/domain/money/addressbook/address"
)

// The limits of section 8 of the interface.
const (
	MaxNameChars = 32 // code points after trimming and NFC (D-WAD-04)
	MaxEntries   = 20 // per user
)

// Entry is a saved address. Within a book its Name is unique, and so is the canonical form of its Address with its tag,
// on all networks.
type Entry struct {
	ID         int64
	Name       string // trimmed, in NFC
	Address    string // trimmed, as the user spelled it
	AddressTag string // tag or memo, a part of the destination; "" for none
	CurrencyID int64
	NetworkID  int64
	CreatedAt  time.Time
	// AddressAt is when the entry got this address and tag; the waiting time before the first use counts from it.
	AddressAt time.Time
}

// Key returns the form of its destination that the database keeps unique, which is weaker than address.Canonical: rows
// of earlier versions may be spellings of one address. Without a tag it is that of earlier versions; an address has no
// line break.
func (e Entry) Key() string {
	if e.AddressTag == "" {
		return address.Key(e.Address)
	}
	return address.Key(e.Address) + "\n" + e.AddressTag
}

// To reports whether the entry has an address, in any spelling, with this tag.
func (e Entry) To(addr, tag string) bool { return e.AddressTag == tag && address.Same(e.Address, addr) }

// Book holds the entries of a user, oldest first.
type Book []Entry

// Find returns the entry with an id. RECORD_NOT_FOUND for every other id, whether it belongs to another user or does
// not exist (D-WAD-08).
func (b Book) Find(id int64) (Entry, error) {
	for _, e := range b {
		if e.ID == id {
			return e, nil
		}
	}
	return Entry{}, fault.New(fault.RecordNotFound, "there is no such address in your book")
}

// Free returns RECORD_ALREADY_EXIST if another entry of the book has the name of e, or its address in any spelling. An
// entry that keeps its address is not refused for it.
func (b Book) Free(e Entry) error {
	keeps := slices.ContainsFunc(b, func(o Entry) bool { return o.ID == e.ID && o.To(e.Address, e.AddressTag) })
	for _, o := range b {
		switch {
		case o.ID == e.ID:
		case o.Name == e.Name:
			return taken("name", "another address of your book has this name")
		case !keeps && o.To(e.Address, e.AddressTag):
			return taken("address", "the address is in your book already")
		}
	}
	return nil
}

// Room returns RECORD_LIMIT_REACHED if the book is full.
func (b Book) Room() error {
	if len(b) >= MaxEntries {
		return fault.New(fault.RecordLimitReached, "a book holds at most %d addresses", MaxEntries)
	}
	return nil
}

func taken(field, message string) error {
	return refuse(fault.RecordAlreadyExist, field, message)
}

func refuse(code fault.Code, field, message string) error {
	return &fault.Error{Code: code, Message: field + ": " + message, Field: field,
		Fields: []fault.Problem{{Field: field, Message: message}}}
}

// maxNameBytes exceeds any name of MaxNameChars in any form; longer texts are not normalised.
const maxNameBytes = 4096

// Name is a name as it was sent, trimmed and in NFC, so that the same letters typed on another system are the same
// name.
type Name struct {
	text string
	long bool
}

// NewName trims and normalises a name.
func NewName(sent string) Name {
	text := strings.TrimSpace(sent)
	if len(text) > maxNameBytes {
		return Name{text, true}
	}
	text = norm.NFC.String(text)
	return Name{text, utf8.RuneCountInString(text) > MaxNameChars}
}

// String returns the name in its stored form.
func (n Name) String() string { return n.text }

// problem describes why a name is invalid, apart from its length.
func (n Name) problem() string {
	switch {
	case n.text == "":
		return "must not be blank"
	case !legible.Valid(n.text):
		return "must be text without control characters"
	}
	return ""
}

// fits returns CHAR_LIMIT_EXCEEDED if the name is too long.
func (n Name) fits() error {
	if n.long {
		return refuse(fault.CharLimitExceeded, "name", fmt.Sprintf("must have at most %d characters", MaxNameChars))
	}
	return nil
}
