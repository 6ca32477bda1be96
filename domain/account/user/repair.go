package user

import (
	"context"
	"slices"
	"strings"

	"castellan/domain/kit/numbering"
)

// Stored is the number of an account as the database has it.
type Stored struct {
	UserID, CountryCode string
	Phone               string // the form of 0.9 if Number is set
	Number              string // "" if Phone is the number
	CV                  int64
}

// Numbers reads the stored numbers.
type Numbers interface {
	// Phones lists numbers in the order of the accounts' ids, at most limit after an id.
	Phones(ctx context.Context, after string, limit int) ([]Stored, error)
	// HoldersOf returns the ids of the accounts that have the numbers in either form.
	HoldersOf(ctx context.Context, numbers []string) (map[string][]string, error)
}

// Shortened is an account whose number is stored in the form of 0.9 (D-PWD-07).
type Shortened struct {
	Stored
	Repaired string
	Other    string // the account that has the repaired number; "" for none
}

// repairPage is the number of accounts that FindShortened reads at once.
const repairPage = 1000

// FindShortened calls found with each account whose number 0.9 shortened, in the order of their ids. ambiguous counts,
// by dialling code, the numbers that are in use both as they are and with a leading 0; they cannot be judged.
func FindShortened(ctx context.Context, from Numbers, found func(Shortened) error) (ambiguous map[string]int,
	err error) {
	ambiguous = map[string]int{}
	for after := ""; ; {
		page, err := from.Phones(ctx, after, repairPage)
		if err != nil || len(page) == 0 {
			return ambiguous, err
		}
		after = page[len(page)-1].UserID
		var short []Shortened
		var numbers []string
		for _, s := range page {
			repaired, unclear := s.repaired()
			if unclear {
				dial, _, _ := numbering.Split(s.Phone[1:])
				ambiguous[dial]++
			}
			if repaired != "" {
				short, numbers = append(short, Shortened{Stored: s, Repaired: repaired}), append(numbers, repaired)
			}
		}
		if len(short) == 0 {
			continue
		}
		held, err := from.HoldersOf(ctx, numbers)
		if err != nil {
			return ambiguous, err
		}
		for _, s := range short {
			if i := slices.IndexFunc(held[s.Repaired], func(id string) bool { return id != s.UserID }); i >= 0 {
				s.Other = held[s.Repaired][i]
			}
			if err := found(s); err != nil {
				return ambiguous, err
			}
		}
	}
}

// repaired returns the number that should be stored; "" if it is stored, or cannot be known.
func (s Stored) repaired() (number string, ambiguous bool) {
	if s.Number != "" && FormerOf(s.Number) == s.Phone {
		return s.Number, false
	}
	dial, stored, plan := numbering.Split(strings.TrimPrefix(s.Phone, "+"))
	if plan == nil || (User{Phone: s.Phone}).Reachable() == "" {
		return "", false
	}
	if restored, ok := plan.Restore(stored); ok {
		return "+" + dial + restored, false
	}
	return "", plan.Ambiguous(stored)
}
