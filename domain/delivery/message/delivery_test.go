package message_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/delivery/message"
)

// A delivery error says whether a repeat can help and whether the message may have arrived. Any other error is
// temporary.
func TestDeliveryErrors(t *testing.T) {
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		err                              error
		permanent, unsent, gone, timeout bool
	}{
		"another error":       {cause, false, false, false, false},
		"temporary":           {&message.DeliveryError{Err: cause}, false, false, false, false},
		"unsent":              {&message.DeliveryError{Err: cause, Unsent: true}, false, true, false, false},
		"late":                {&message.DeliveryError{Err: cause, Timeout: true}, false, false, false, true},
		"permanent":           {&message.DeliveryError{Err: cause, Permanent: true}, true, true, false, false},
		"gone":                {&message.DeliveryError{Err: cause, Permanent: true, Gone: true}, true, true, true, false},
		"gone, but temporary": {&message.DeliveryError{Err: cause, Gone: true}, false, false, false, false},
	} {
		for _, err := range []error{c.err, fmt.Errorf("send: %w", c.err)} {
			got := [4]bool{message.IsPermanent(err), message.IsUnsent(err), message.IsGone(err), message.IsTimeout(err)}
			if got != [4]bool{c.permanent, c.unsent, c.gone, c.timeout} || !errors.Is(err, cause) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	for permanent, want := range map[bool]string{true: "not deliverable: cause", false: "not delivered for now: cause"} {
		if got := (&message.DeliveryError{Permanent: permanent, Err: cause}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Only the names of kinds are kinds; the error names each other one and lists the kinds.
func TestNamesOfKinds(t *testing.T) {
	var all []string
	for _, k := range message.Kinds() {
		all = append(all, string(k))
	}
	if err := message.CheckKinds(all); err != nil || len(all) == 0 {
		t.Errorf("%d kinds, %v", len(all), err)
	}
	err := message.CheckKinds([]string{"x", all[0], "y"})
	if err == nil || strings.Count(err.Error(), "is not a kind of notice") != 2 || !strings.Contains(err.Error(), `"x"`) ||
		!strings.Contains(err.Error(), `"y"`) || !strings.Contains(err.Error(), strings.Join(all, ", ")) {
		t.Error(err)
	}
}
