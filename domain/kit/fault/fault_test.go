package fault_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// An error has the code of the first fault in its chain; any other error is internal.
func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fault.Code
	}{
		{nil, ""},
		{errors.New("x"), fault.Internal},
		{fault.New(fault.Forbidden, "no"), fault.Forbidden},
		{fmt.Errorf("wrapped: %w", fault.New(fault.Forbidden, "no")), fault.Forbidden},
	} {
		storetest.Wants(t, c.err, c.want, c.err)
	}
}

// The text of an error names its code and its field.
func TestText(t *testing.T) {
	for want, err := range map[string]error{
		"FORBIDDEN: not 2":            fault.New(fault.Forbidden, "not %d", 2),
		"INVALID_FIELD: a: is over 2": fault.Invalid("a", "is over %d", 2),
		"INVALID_FIELD: b: bad":       fault.All([]fault.Problem{{Field: "b", Message: "bad"}, {Field: "c"}}),
	} {
		storetest.Equal(t, err.Error(), want)
	}
	storetest.Must(t, fault.All(nil))
	var f *fault.Error
	if err := fault.All([]fault.Problem{{Field: "b"}, {Field: "c"}}); !errors.As(err, &f) || len(f.Fields) != 2 {
		t.Errorf("%+v", f)
	}
	if f := fault.Invalid("a", "bad"); len(f.Fields) != 1 || f.Fields[0] != (fault.Problem{Field: "a", Message: "bad"}) {
		t.Errorf("%+v", f)
	}
}

// A fault with a delay is another value: shared faults are unchanged.
func TestAfter(t *testing.T) {
	shared := fault.New(fault.RateLimited, "slow down")
	if got := shared.After(time.Second); got.RetryAfter != time.Second || shared.RetryAfter != 0 ||
		got.Message != "slow down" {
		t.Errorf("%+v, %+v", got, shared)
	}
}
