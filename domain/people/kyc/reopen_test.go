package kyc_test

import (
	"fmt"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/document"
	"castellan/domain/people/kyc"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// A rejected account waits again when its user uploads an identity document, and only then.
func TestUploadReopens(t *testing.T) {
	d := newDesk(t)
	papers := &document.Service{Store: d.Documents, Users: d.Users, Files: persistencetest.Files(t),
		Pictures: picture.NewDecoder(), Ring: keyringtest.Ring(t, d.Changes.Now), Changes: d.Changes, Quota: 1 << 20,
		Values: parameter.NewCache(kit.NewParameters(d.db)).Set, Follows: d.Reopens}
	for _, c := range []struct {
		by, userID string
		kind       int64
		was, want  string
	}{
		{"u1", "u1", document.Unclassified, user.Rejected, user.WaitingApproval},
		{"u1", "u1", d.Types.Front, user.Rejected, user.WaitingApproval},
		{"u1", "u1", d.Types.Back, user.Rejected, user.WaitingApproval},
		{"u1", "u1", d.Types.Selfie, user.Rejected, user.WaitingApproval},
		{"u1", "u1", d.Types.Address, user.Rejected, user.Rejected},
		{"boss", "u1", d.Types.Front, user.Rejected, user.Rejected},
		{"u1", "u1", d.Types.Front, user.ManuelApproved, user.ManuelApproved},
		{"u1", "u1", d.Types.Front, user.WaitingApproval, user.WaitingApproval},
		{"u2", "u2", d.Types.Front, user.Rejected, user.Rejected}, // of u1
	} {
		persistencetest.Exec(t, d.db, "UPDATE users SET kyc_confirm = ? WHERE id = 'u1'", c.was)
		reopens := "KYC_REOPEN|" + c.by + "|u1|u1|kycConfirm=rejected -> waitingApproval"
		before := count(persistencetest.Acts(t, d.db), reopens)
		added, err := papers.Add(t.Context(), audit.By{UserID: c.by}, document.Document{UserID: c.userID, Type: c.kind,
			Name: "a.pdf"}, []byte("%PDF-1.7"), document.Fields{})
		storetest.Must(t, err)
		got := d.user("u1").KYCConfirm
		rows := count(persistencetest.Acts(t, d.db), reopens) - before
		if got != c.want || rows == 1 != (c.was == user.Rejected && c.want == user.WaitingApproval) ||
			d.state(added.ID) != "active waitingApproval" {
			t.Errorf("%+v: %s, %d rows, %s", c, got, rows, d.state(added.ID))
		}
	}
	// A document that fails to be stored reopens nothing.
	persistencetest.Exec(t, d.db, "UPDATE users SET kyc_confirm = ? WHERE id = 'u1'", user.Rejected)
	papers.Quota = 400 << 10
	for n := range 20 {
		_, err := papers.Add(t.Context(), audit.By{UserID: "boss"}, document.Document{UserID: "u1", Type: 4,
			Name: fmt.Sprint(n, ".pdf")}, []byte("%PDF-1.7"), document.Fields{})
		if fault.CodeOf(err) == fault.RecordLimitReached {
			break
		}
		storetest.Must(t, err)
	}
	_, err := papers.Add(t.Context(), audit.By{UserID: "u1"}, document.Document{UserID: "u1", Type: 1, Name: "a.pdf"},
		[]byte("%PDF-1.7"), document.Fields{})
	if storetest.Wants(t, err, fault.RecordLimitReached); d.user("u1").KYCConfirm != user.Rejected {
		t.Error("reopened without a document")
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// The operator reopens a rejected identity, once, and it can be decided on again.
func TestReopen(t *testing.T) {
	d := newDesk(t)
	reopen := func(id string) error { return kyc.Reopen(t.Context(), d.Users, d.Changes, audit.Operator, id) }
	storetest.Wants(t, reopen("u1"), fault.InvalidState)
	storetest.Wants(t, reopen("u9"), fault.RecordNotFound)
	a := d.document("a", "u1", 1, "png")
	v := kyc.Verdict{UserID: "u1", KYCConfirm: user.Rejected, DocumentIDs: []string{a}, DocumentID: a,
		Reason: new("blurred")}
	storetest.Must(t, d.Decide(t.Context(), by, v))
	won := storetest.Race(t, 8, fault.InvalidState, func(int) error { return reopen("u1") })
	if won != 1 || d.user("u1").KYCConfirm != user.WaitingApproval {
		t.Errorf("%d won, %s", won, d.user("u1").KYCConfirm)
	}
	v.KYCConfirm = user.ManuelApproved
	storetest.Must(t, d.Decide(t.Context(), by, v))
	storetest.Wants(t, reopen("u1"), fault.InvalidState)
}
