package ledger

import (
	"context"
	"errors"
	"time"

	"castellan/domain/kit/commit"
)

// Night is the result of Nightly.
type Night struct {
	Totals []Totals // nil if the verification failed
	// Closing and Verification are the errors of the two parts. The second is ErrBroken, or the ledger cannot be read.
	Closing, Verification error
}

// Nightly closes the past days and then verifies the ledger, whether or not the days could be closed.
func Nightly(ctx context.Context, books Books, c Calendar, to commit.Committer, now time.Time) (n Night) {
	n.Closing = CloseDays(ctx, c, to, now)
	n.Totals, n.Verification = Verify(ctx, books)
	return n
}

// Alarms counts the reasons for an alarm: each asset with money in suspense, and each part that failed.
func (n Night) Alarms() (alarms int64) {
	for _, t := range n.Totals {
		if t.Unexplained.Sign() != 0 {
			alarms++
		}
	}
	for _, err := range []error{n.Closing, n.Verification} {
		if err != nil {
			alarms++
		}
	}
	return alarms
}

// Result returns the fault of a broken ledger. Any other failure is an error, after which the run is repeated.
func (n Night) Result() (fault string, err error) {
	err = errors.Join(n.Verification, n.Closing)
	if errors.Is(n.Verification, ErrBroken) {
		return err.Error(), nil
	}
	return "", err
}
