package commit

import (
	"errors"
	"time"

	"castellan/domain/kit/fault"
)

// Retry calls decide, and again while its unit is refused because a row of an account has changed.
//
// Errors: those of decide; UNAVAILABLE if it was refused that many times.
func Retry(times int, decide func() error) error {
	for range times {
		if err := decide(); !errors.Is(err, ErrFenced) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the account is busy; try again").After(time.Second)
}
