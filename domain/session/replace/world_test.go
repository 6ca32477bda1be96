package replace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/kit/client"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/session/replace"
	"castellan/domain/session/session"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

const (
	first  = "kedi7şeker"
	second = "köpek8limon"
	third  = "fare9armut"
)

// world is the service over a database, with an engine that records the started challenges.
type world struct {
	*replace.Service
	challengetest.Notices
	t       *testing.T
	db      *persistence.DB
	now     time.Time
	user    user.User
	keys    *keyring.Keeper
	started []challenge.StartRequest
	refuse  []error // of the next starts
	signed  []token.Claims
	no      error // of the signer
}

func (w *world) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	if len(w.refuse) > 0 {
		err := w.refuse[0]
		if w.refuse = w.refuse[1:]; err != nil {
			return challenge.Started{}, err
		}
	}
	w.started = append(w.started, r)
	return challenge.Started{PAuth: "p-auth"}, w.db.Commit(ctx, r.With...)
}

func (w *world) Subject(_ context.Context, phone string) (string, []string, error) {
	if phone == "+905329999999" {
		return "", nil, fault.New(fault.Unavailable, "away")
	}
	return "subject of " + phone, []string{"former of " + phone}, nil
}

func (w *world) Sign(c token.Claims) (string, error) {
	w.signed = append(w.signed, c)
	return "signed " + c.ID, w.no
}

func newWorld(t *testing.T) *world {
	db := persistencetest.SQLite(t)
	w := &world{t: t, db: db, now: time.UnixMilli(1_700_000_000_000).UTC()}
	now := func() time.Time { return w.now }
	w.Notices = challengetest.Notices{Now: now}
	w.keys = keyringtest.Keeper(t, now)
	hasher, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1},
		Slots: 2, Queue: 500, Wait: time.Minute})
	storetest.Must(t, err)
	guards := account.NewPasswordGuards(db)
	w.Service = &replace.Service{Users: account.NewUsers(db), Sessions: sessionstore.NewSessions(db),
		Tokens: sessionstore.NewResetTokens(db), Signer: w, Engine: w, Hasher: hasher, Policy: password.DefaultPolicy(),
		Wrong: password.NewGuards(guards, db, replace.WrongRules(), now), Commit: db, Ring: w.keys.Ring(),
		Place:    func(from client.Origin) string { return from.Site },
		Admits:   func(user.User, challenge.Starter) bool { return true },
		TokenTTL: 10 * time.Minute, Now: now}
	w.user = w.add(1, func(*user.User) {})
	return w
}

// add creates an account with the first password.
func (w *world) add(n int, edit func(*user.User)) user.User {
	w.t.Helper()
	hash := storetest.Value(w.Hasher.Hash(w.t.Context(), first))(w.t)
	u := user.New(id.New(w.now), w.now)
	u.CountryCode, u.Phone, u.Email = "90", fmt.Sprintf("+90532%07d", n), fmt.Sprintf("user%06d@gmail.com", n)
	edit(&u)
	storetest.Must(w.t, w.db.Commit(w.t.Context(), user.Add{User: u, PasswordHash: hash}))
	return u
}

// login creates a session of the user and returns its id.
func (w *world) login() string {
	w.t.Helper()
	s := session.Session{ID: id.New(w.now), UserID: w.user.ID, CreatedAt: w.now, LastSeenAt: w.now,
		ExpiresAt: w.now.Add(time.Hour), SV: w.user.SV}
	storetest.Must(w.t, w.db.Commit(w.t.Context(), session.Add{CV: w.user.CV, Session: s}))
	return s.ID
}

// is reports whether a text is the password of the user.
func (w *world) is(text string) bool {
	w.t.Helper()
	stored := storetest.Value(w.Users.Secret(w.t.Context(), w.user.ID))(w.t)
	right, _, err := w.Hasher.Verify(w.t.Context(), text, stored.Hash)
	storetest.Must(w.t, err)
	return right
}

// build completes a challenge of the user and commits what its action writes.
func (w *world) build(a challenge.Action, c challenge.Challenge, command any) (challenge.Result, error) {
	w.t.Helper()
	text := storetest.Value(json.Marshal(command))(w.t)
	r, writes, err := a.Build(w.t.Context(), challenge.Execution{Challenge: c, Command: text, Now: w.now})
	if err == nil {
		err = w.db.Commit(w.t.Context(), writes...)
	}
	return r, err
}

// challenge returns a challenge that the user has completed.
func (w *world) challenge(from challenge.Starter) challenge.Challenge {
	return challenge.Challenge{ID: id.New(w.now), UserID: w.user.ID,
		Body: challenge.Body{CV: w.user.CV, SV: w.user.SV, Starter: from}}
}

// token issues an ot-auth for the user and returns its id.
func (w *world) token() string {
	w.t.Helper()
	_, err := w.build(w.ResetAction(), w.challenge(challenge.Starter{}), nil)
	storetest.Must(w.t, err)
	return w.signed[len(w.signed)-1].ID
}

// reload reads the user again.
func (w *world) reload() {
	w.t.Helper()
	var err error
	w.user, err = w.Users.Get(w.t.Context(), w.user.ID)
	storetest.Must(w.t, err)
}

func (w *world) set(columns string) {
	w.t.Helper()
	persistencetest.Exec(w.t, w.db, "UPDATE users SET "+columns+" WHERE id = ?", w.user.ID)
}
