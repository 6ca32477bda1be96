package kyc_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/kyc"
)

// If no document has the type, the newest waiting picture without a type is shown, and each for one type only.
func TestImagesWithoutType(t *testing.T) {
	d := newDesk(t)
	shows := func(want string) {
		t.Helper()
		all, err := d.Images(t.Context(), by, "u1")
		storetest.Must(t, err)
		shown := func(p *picture.Picture) bool { return p != nil }
		got := fmt.Sprint(all.DocumentID, " ", shown(all.Front), shown(all.Back), shown(all.Selfie))
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	d.document("D1", "u1", 0, "png")
	d.document("D2", "u1", 0, "pdf") // not a picture
	d.document("D3", "u1", 5, "png") // of another type
	d.document("D4", "u2", 0, "png") // of another user
	shows("D1 true false false")
	d.document("D5", "u1", 0, "png")
	shows("D5 true true false")
	d.document("D6", "u1", 0, "png")
	shows("D6 true true true")
	storetest.Must(t, d.Decide(t.Context(), by, kyc.Verdict{UserID: "u1", KYCConfirm: user.Rejected,
		DocumentIDs: []string{"D6", "D5"}, DocumentID: "D6", Reason: new("blurred")}))
	shows("D6 true true false") // the decided one, and D1 as the back
	storetest.Must(t, kyc.Reopen(t.Context(), d.Users, d.Changes, by, "u1"))
	shows("D1 true false false") // waiting documents come first
	d.document("D7", "u1", 1, "png")
	shows("D7 true true false") // a typed document comes first
	d.document("D8", "u1", 1, "broken")
	shows("D8 false true false")
	d.document("D9", "u1", 1, "lost")
	if _, err := d.Images(t.Context(), by, "u1"); err == nil {
		t.Error("no error of bytes that cannot be read")
	}
}

// A decision on an address without a proof uses the newest waiting picture, once.
func TestAddressProofWithoutType(t *testing.T) {
	d := newDesk(t)
	confirm := func(value string) {
		t.Helper()
		d.now = d.now.Add(time.Second)
		storetest.Must(t, d.Confirm(t.Context(), by, "u1", value, ""))
	}
	confirm(user.ManuelApproved) // nothing waits
	a, b := d.document("a", "u1", 0, "png"), d.document("b", "u1", 0, "png")
	c, other := d.document("c", "u1", 0, "pdf"), d.document("d", "u2", 0, "png")
	confirm(user.WaitingApproval)
	all := func() string { return d.state(a) + ", " + d.state(b) + ", " + d.state(c) + ", " + d.state(other) }
	const waits = "active waitingApproval"
	if got := all(); got != waits+", "+waits+", "+waits+", "+waits {
		t.Error(got)
	}
	d.took()
	for _, value := range []string{user.ManuelApproved, user.ManuelApproved} {
		confirm(value)
		if got := all(); got != waits+", active approved, "+waits+", "+waits {
			t.Error(got)
		}
	}
	if got := d.took(); got != "u1 kyc address-approved  192.0.2.1 [MAIL SMS]" {
		t.Error(got)
	}
	confirm(user.Rejected)
	if got := all(); got != waits+", deActive rejected, "+waits+", "+waits {
		t.Error(got)
	}
	proof := d.document("e", "u1", 4, "png") // a typed document comes first
	confirm(user.ManuelApproved)
	if got := all() + ", " + d.state(proof); got != waits+", active approved, "+waits+", "+waits+", active approved" {
		t.Error(got)
	}
	d.document("f", "u2", 0, "png")
}
