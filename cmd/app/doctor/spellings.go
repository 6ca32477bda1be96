package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/money"
)

// mostSpellings limits the listed records; each names the records that are spellings of one transfer or address.
const mostSpellings = 10

// spellings are the checks for records of one transfer or one address that earlier versions took for different ones.
func (d Doctor) spellings() []probe {
	check := func(list func(ctx context.Context, most int) ([]string, error)) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			if pending, err := persistence.Pending(ctx, d.db); err != nil || len(pending) > 0 {
				return "not compared before the migration", err
			}
			return listed(list(ctx, mostSpellings))
		}
	}
	return []probe{
		{"deposits", "the transfer may be credited several times",
			"compare the deposits with the network, and correct a balance with an adjustment",
			check(money.NewTransactions(d.db).Respelled)},
		{"address books", "the entries are the same address, with separate waiting times",
			"ask the user to delete one of them", check(money.NewAddressBooks(d.db).Respelled)},
		{"phone numbers", "messages go to another number, and new accounts keep the form of 0.9",
			"run castellan user phones, and with --repair when no node of 0.9 runs any more", d.shortened},
	}
}

// shortened checks whether numbers are stored in the form of 0.9.
func (d Doctor) shortened(ctx context.Context) (string, error) {
	if pending, err := persistence.Pending(ctx, d.db); err != nil || len(pending) > 0 {
		return "not compared before the migration", err
	}
	n := 0
	var first []string
	_, err := user.FindShortened(ctx, account.NewUsers(d.db), func(s user.Shortened) error {
		if n++; n <= mostSpellings {
			first = append(first, s.UserID)
		}
		return nil
	})
	switch {
	case fault.CodeOf(err) == fault.Unavailable, errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("too many to compare in time; %d are shortened so far", n), nil
	case err == nil && n > 0:
		err = fmt.Errorf("%d are shortened: %s", n, strings.Join(first, ", "))
	}
	return "none is shortened", err
}

// listed returns an error that lists records, if there are any.
func listed(found []string, err error) (string, error) {
	switch {
	case fault.CodeOf(err) == fault.Unavailable, errors.Is(err, context.DeadlineExceeded):
		return "too many to compare in time", nil
	case err == nil && len(found) == mostSpellings:
		err = fmt.Errorf("at least %d in several spellings: %s", len(found), strings.Join(found, "; "))
	case err == nil && len(found) > 0:
		err = fmt.Errorf("%d in several spellings: %s", len(found), strings.Join(found, "; "))
	}
	return "none in several spellings", err
}
