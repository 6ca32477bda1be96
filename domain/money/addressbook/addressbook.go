// Package addressbook owns the withdrawal address book of a user (sections 2.10
// and 4.18 of the interface): up to twenty named addresses, each on a pair of currency and
// network on which something may be withdrawn.
//
// The one idea: what a user already has is read while the book is held, so that the
// rules over all of it (names and addresses are unique, twenty are enough) are
// pure functions of a Book and still hold when the user adds from twenty places at
// once. The database's own constraints stand behind them.
//
// Start reading at Book, then Service in service.go, which carries out the
// operations in the order of their errors (decision D-WAD-03). What an address
// of a network looks like is package address. Implements D-WAD-01…08.
package addressbook

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"castellan/domain/kit/fault"
	"castellan/domain/money/addressbook/address"
)

// The limits of section 8 of the interface.
const (
	MaxNameChars = 32 // code points after trimming and NFC (D-WAD-04)
	MaxEntries   = 20 // per user
)

// Entry is one saved address. Within a book its Name and the Key of its Address
// are unique, whatever the network.
type Entry struct {
	ID         int64
	Name       string // trimmed, NFC
	Address    string // trimmed, as the user spelled it
	CurrencyID int64
	NetworkID  int64
	CreatedAt  time.Time
	// AddressAt is since when the entry has this address; a waiting time before
	// the first use counts from it.
	AddressAt time.Time
}

// Key is what two spellings of its address have in common (D-WAD-06).
func (e Entry) Key() string { return address.Key(e.Address) }

// Book is what a user has saved, oldest first.
type Book []Entry

// Find returns the entry with an id. RECORD_NOT_FOUND for every other id, be it
// another user's or nobody's (D-WAD-08).
func (b Book) Find(id int64) (Entry, error) {
	for _, e := range b {
		if e.ID == id {
			return e, nil
		}
	}
	return Entry{}, fault.New(fault.RecordNotFound, "there is no such address in your book")
}

// Free reports whether e may stand in the book beside the others, itself left
// out: RECORD_ALREADY_EXIST when its name or its address is taken.
func (b Book) Free(e Entry) error {
	for _, o := range b {
		switch {
		case o.ID == e.ID:
		case o.Name == e.Name:
			return taken("name", "another address of your book has this name")
		case o.Key() == e.Key():
			return taken("address", "the address is in your book already")
		}
	}
	return nil
}

// Room is RECORD_LIMIT_REACHED when the book is full.
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

// maxNameBytes is more than any name of MaxNameChars takes in any form; beyond
// it nothing is normalised.
const maxNameBytes = 4096

// Name is a name as it was sent, made ready to be judged: trimmed and in NFC,
// so that the same letters typed on another system are the same name.
type Name struct {
	text string
	long bool
}

// NewName reads a name.
func NewName(sent string) Name {
	text := strings.TrimSpace(sent)
	if len(text) > maxNameBytes {
		return Name{text, true}
	}
	text = norm.NFC.String(text)
	return Name{text, utf8.RuneCountInString(text) > MaxNameChars}
}

// String is the name in the form in which it is kept.
func (n Name) String() string { return n.text }

// problem is what makes a name no name at all, however long.
func (n Name) problem() string {
	switch {
	case n.text == "":
		return "must not be blank"
	case !utf8.ValidString(n.text) || strings.ContainsFunc(n.text, unicode.IsControl):
		return "must be text without control characters"
	}
	return ""
}

// fits is CHAR_LIMIT_EXCEEDED for a name that is too long.
func (n Name) fits() error {
	if n.long {
		return refuse(fault.CharLimitExceeded, "name", fmt.Sprintf("must have at most %d characters", MaxNameChars))
	}
	return nil
}
