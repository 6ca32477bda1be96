package kyc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/document"
	"castellan/domain/people/identity"
	"castellan/domain/people/kyc"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// desk is the service with the users u1 and u2. The file name of a document determines its content.
type desk struct {
	*kyc.Service
	t      *testing.T
	db     *persistence.DB
	now    time.Time
	told   []string
	checks error
	values func() *parameter.Set
}

func newDesk(t *testing.T) *desk {
	db := persistencetest.SQLite(t)
	d := &desk{t: t, db: db, now: time.UnixMilli(1_700_000_000_000).UTC(),
		values: parameter.NewCache(kit.NewParameters(db)).Set}
	d.Service = &kyc.Service{Store: people.NewDecisions(db), Users: account.NewUsers(db),
		Documents: people.NewDocuments(db), Originals: d, Pictures: picture.NewDecoder(), Language: "tr",
		Levels: money.NewLevels(db), Values: d.values,
		Types:   kyc.Types{Front: 1, Back: 2, Selfie: 3, Address: 4},
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return d.now }},
		Checks: func(context.Context, user.User) (identity.Checks, error) {
			return identity.Checks{Number: new(true)}, d.checks
		},
		Notify: func(to challenge.Account, topic, template string, v message.Values, ip string,
			on ...challenge.Name) []commit.Write {
			d.told = append(d.told, fmt.Sprint(to.UserID, " ", topic, " ", template, " ", v["reason"], " ", ip, " ", on))
			return nil
		}}
	for _, id := range []string{"u1", "u2"} {
		u := user.New(id, d.now)
		u.Email = id + "@example.com"
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
	}
	return d
}

func (d *desk) Content(_ context.Context, x document.Document) ([]byte, error) {
	switch x.Name {
	case "png":
		return picturetest.PNG(40, 20), nil
	case "broken":
		return []byte("no picture"), nil
	}
	return nil, errors.New("no bytes")
}

// document adds a document of a type.
func (d *desk) document(id, userID string, kind int64, name string) string {
	d.t.Helper()
	media := "image/png"
	if name == "pdf" {
		media = document.PDF
	}
	storetest.Must(d.t, d.Documents.Add(d.t.Context(), document.Document{ID: id, UserID: userID, Name: name, Type: kind,
		MimeType: media, Status: document.Active, Reason: new(document.WaitingApproval), Path: "document/" + id, Size: 1,
		CreatedAt: d.now}, 1, 1000))
	return id
}

// state returns the status and the reason of a document.
func (d *desk) state(id string) string {
	d.t.Helper()
	x, err := d.Documents.Get(d.t.Context(), id)
	storetest.Must(d.t, err)
	return x.Status + " " + *x.Reason
}

func (d *desk) user(id string) user.User {
	d.t.Helper()
	u, err := d.Users.Get(d.t.Context(), id)
	storetest.Must(d.t, err)
	return u
}

// took returns the messages to users so far, and clears them.
func (d *desk) took() string {
	defer func() { d.told = nil }()
	return strings.Join(d.told, "; ")
}

var by = audit.By{UserID: "boss", IP: "192.0.2.1"}
