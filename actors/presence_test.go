package actors_test

import (
	"testing"

	"castellan/domain/people/presence"
)

// Two operators meet in the room of one record, and in no other room (D-KYC-10).
func TestPresenceIsPerRecord(t *testing.T) {
	w := open(t)
	say := func(subject, who string, leaves bool, want ...string) {
		t.Helper()
		others, err := w.client.Say(t.Context(), subject, presence.Person{UserID: who, Name: "Name of " + who}, leaves)
		if err != nil || len(others) != len(want) {
			t.Fatalf("%s meets %v, %v, and not %q", who, others, err, want)
		}
		for i, o := range others {
			if o.UserID != want[i] || o.Name != "Name of "+want[i] || o.Since.IsZero() {
				t.Errorf("%s meets %+v, and not %s", who, o, want[i])
			}
		}
	}
	say("kyc/1", "a", false)
	say("kyc/1", "b", false, "a")
	say("kyc/2", "c", false)
	say("kyc/1", "a", false, "b")
	say("kyc/1", "b", true, "a")
	say("kyc/1", "a", false)
}
