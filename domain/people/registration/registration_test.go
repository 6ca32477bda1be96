package registration_test

import (
	"reflect"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/registration"
)

// An imported account has the newcomer's fields in canonical form in addition to its known data, and commits with its
// external id and audit row.
func TestImport(t *testing.T) {
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	by := audit.By{UserID: "service:old-platform"}
	known := user.New("01JD0000000000000000000000", at)
	known.Level, known.KYCConfirm, known.Phone, known.Name = 2, user.ManuelApproved, "+1999", "former"
	n := registration.Newcomer{ExternalID: "old-7", CountryCode: "+90", Phone: "5320000007", Email: " Ayse@Example.com ",
		Name: " Ayşe ", Surname: "Demir", Language: "tr"}
	made, writes, err := n.Import(by, known)
	storetest.Must(t, err)
	want := known
	want.CountryCode, want.Phone, want.Email = "90", "+905320000007", "ayse@example.com"
	want.Name, want.Surname, want.Language, want.Type = "Ayşe", "Demir", "tr", user.Individual
	if !reflect.DeepEqual(made, want) {
		t.Errorf("%+v, want %+v", made, want)
	}
	canonical, err := n.Canonical()
	storetest.Must(t, err)
	wrote := []commit.Write{
		integration.Add{Claim: integration.Claim{Kind: integration.Users, ExternalID: "old-7", RecordID: known.ID, At: at,
			Digest: integration.Digest(canonical)}},
		user.Add{User: want},
		audit.Record{At: at, ActorID: by.UserID, UserID: known.ID, Action: registration.ActionAdd, Target: known.ID,
			Outcome: audit.Success}}
	if !reflect.DeepEqual(writes, wrote) {
		t.Errorf("%+v, want %+v", writes, wrote)
	}
	for name, bad := range map[string]registration.Newcomer{
		"no external id": {CountryCode: "90", Phone: "5320000007", Name: "Ayşe"},
		"no name":        {ExternalID: "old-8", CountryCode: "90", Phone: "5320000008"},
		"no number":      {ExternalID: "old-9", CountryCode: "90", Phone: "x", Name: "Ayşe"}} {
		if _, writes, err := bad.Import(by, known); fault.CodeOf(err) != fault.InvalidField || writes != nil {
			t.Errorf("%s: %v, %v", name, writes, err)
		}
	}
}
