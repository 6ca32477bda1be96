package standing_test

import (
	"slices"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/standing"
)

// Find and ConfirmAML survive four concurrent changes of the parameter, and fail at the fifth.
func TestChangesOfTheParameterAreRetried(t *testing.T) {
	d := newDesk(t)
	confirm := func() error {
		_, err := d.ConfirmAML(t.Context(), audit.By{UserID: "boss"}, "ayse")
		return err
	}
	find := func(externalID string) error {
		_, err := d.Find(t.Context(), audit.By{UserID: "service"}, standing.Finding{ExternalID: externalID, UserID: "ayse",
			Status: standing.Risky})
		return err
	}
	wants := func(status string, ignored ...string) {
		t.Helper()
		u, err := d.users.Get(t.Context(), "ayse")
		if storetest.Must(t, err); u.AMLStatus != status || !slices.Equal(d.ignored(), ignored) {
			t.Errorf("%s, ignored %q; want %s, %q", u.AMLStatus, d.ignored(), status, ignored)
		}
	}
	storetest.Must(t, find("f1"))
	d.busy = 5
	storetest.Wants(t, confirm(), fault.InvalidState)
	wants(standing.Risky)
	d.busy = 4
	storetest.Must(t, confirm())
	wants(user.NotRisky, "ayse")
	d.busy = 5
	storetest.Wants(t, find("f2"), fault.InvalidState)
	wants(user.NotRisky, "ayse")
	d.busy = 4
	storetest.Must(t, find("f2"))
	wants(standing.Risky)
	if got := d.details(standing.ActionFinding); len(got) != 2 {
		t.Errorf("audit %q", got)
	}
}

// A finding has a known status and an external id of at most 128 bytes.
func TestFindingIsValidated(t *testing.T) {
	f := standing.Finding{ExternalID: strings.Repeat("x", 129), Status: "sanctioned"}
	_, err := (&standing.Service{}).Find(t.Context(), audit.By{}, f)
	storetest.WantsFields(t, err, "externalId status")
}
