package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// replay is a published vulnerability of another product, tried here: its number, its description, and the
// attack with the safe outcome. Each also shows that the legitimate request passes, so that refusing every
// request fails the test.
type replay struct {
	id  string
	was string
	run func(t *testing.T, s stage)
	own []string // settings of a service of its own; nil: the shared one
}

// replays returns all of them; docs/replayed.md describes the same list.
func replays() []replay {
	var all []replay
	for _, some := range [][]replay{
		replaysOfCodes, replaysOfGuesses, replaysOfPushes, replaysOfTokens, replaysOfPasskeys, replaysOfSessions,
		replaysOfAccounts,
		replaysOfNames, replaysOfPaths, replaysOfProxies, replaysOfRecords, replaysOfTexts, replaysOfBodies, replaysOfFrames,
		replaysOfImports, replaysOfKeys, replaysOfRemembered,
	} {
		all = append(all, some...)
	}
	return all
}

// stage is the place of an attack: a service, an address of its own and an administrator's session.
type stage struct {
	blackbox.Place
	s     *blackbox.Site
	boss  blackbox.Headers
	model blackbox.Account // other accounts are copies of this one
	shape []string         // its columns
	last  *atomic.Int64
}

// appOrigin is the only origin whose pages may use the service.
const appOrigin = "https://app.example.test"

func newStage(t *testing.T, kind string, settings ...string) stage {
	t.Helper()
	s := blackbox.NewSite(t, kind).Set(blackbox.Unlimited...).Set("LIMITS_RESET_PER_PHONE=5")
	n := s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "HTTP_CORS_ORIGINS="+appOrigin).Set(settings...).Start()
	return stage{Place: blackbox.From(t, n, blackbox.Here), s: s, boss: blackbox.Admin(t, s, n), model: s.Seeded("user"),
		shape: s.Columns("users"), last: &atomic.Int64{}}
}

// at returns the stage for a test, from an address of its own.
func (st stage) at(t *testing.T) stage {
	n := st.last.Add(1)
	st.s = st.s.For(t)
	st.Place = blackbox.From(t, st.Node.For(t), fmt.Sprintf("198.18.%d.%d", n/250, n%250+1))
	return st
}

// user returns a new account, with the password of the model.
func (st stage) user() blackbox.Account {
	st.T.Helper()
	n := int(st.last.Add(1))
	a := blackbox.NewAccount(500 + n)
	a.ID, a.Password = fmt.Sprintf("01JREPLAY%017d", n), st.model.Password
	var from []string
	for _, column := range st.shape {
		switch column {
		case "id":
			column = "'" + a.ID + "'"
		case "email":
			column = "'" + a.Mail + "'"
		case "phone":
			column = "'" + a.Number() + "'"
		}
		from = append(from, column)
	}
	st.s.Exec("INSERT INTO users ("+strings.Join(st.shape, ", ")+") SELECT "+strings.Join(from, ", ")+
		" FROM users WHERE email = $1", st.model.Mail)
	return a
}

// known returns a new account with a session.
func (st stage) known() (blackbox.Account, blackbox.Headers) {
	st.T.Helper()
	a := st.user()
	return a, st.Session(a)
}

// begin sends the password.
func (st stage) begin(a blackbox.Account) blackbox.Flow {
	st.T.Helper()
	return blackbox.FlowOf(st.T, st.Login(a))
}

// start starts an action without an endpoint of its own.
func (st stage) start(action string, me blackbox.Headers) blackbox.Flow {
	st.T.Helper()
	return blackbox.FlowOf(st.T, st.Ask("POST", blackbox.StartPath, map[string]string{"actionCode": action}, me))
}

// reset starts a password reset.
func (st stage) reset(a blackbox.Account) blackbox.Flow {
	st.T.Helper()
	body := map[string]string{"countryCode": a.Country, "phoneNumber": a.Phone}
	return blackbox.FlowOf(st.T, st.Ask("POST", "/auth/password/reset", body, nil))
}

// answer answers a method with the code that was sent for it.
func (st stage) answer(a blackbox.Account, f blackbox.Flow, method string) blackbox.Answer {
	st.T.Helper()
	return st.Complete(f, f.Method(st.T, method), st.Code(st.T, a, method))
}

// wrong answers a method n times with a code that was not sent.
func (st stage) wrong(a blackbox.Account, f blackbox.Flow, method string, n int) {
	st.T.Helper()
	for range n {
		st.Complete(f, f.Method(st.T, method), blackbox.WrongFor(st.Code(st.T, a, method))).Is(st.T, 422, "OTP_INVALID")
	}
}

// update sets the password with the token of a reset.
func (st stage) update(password string, h blackbox.Headers) blackbox.Answer {
	st.T.Helper()
	return st.Ask("POST", "/auth/password/update", map[string]string{"password": password, "passwordVerify": password}, h)
}

// onceFor returns the ot-auth of a completed reset.
func (st stage) onceFor(a blackbox.Account) blackbox.Headers {
	st.T.Helper()
	f := st.reset(a)
	st.answer(a, f, "SMS").Is(st.T, 200, "")
	return blackbox.Headers{"ot-auth": st.answer(a, f, "MAIL").Is(st.T, 200, "").Header.Get("ot-auth")}
}

// standing sets the status of an account, as an administrator does.
func (st stage) standing(a blackbox.Account, status string) {
	st.T.Helper()
	st.Ask("POST", "/admin/user/close-user-authentication",
		map[string]string{"userId": a.ID, "status": status, "description": "replayed"}, st.boss).Is(st.T, 200, "")
}

// open fails the test unless the session is open; ended fails it unless the session has ended.
func (st stage) open(me blackbox.Headers) { st.T.Helper(); st.sessions(me).Is(st.T, 200, "") }
func (st stage) ended(me blackbox.Headers) {
	st.T.Helper()
	st.sessions(me).Is(st.T, 401, "TOKEN_REVOKED")
}

func (st stage) sessions(me blackbox.Headers) blackbox.Answer {
	st.T.Helper()
	return st.Ask("GET", blackbox.SessionsPath, nil, me)
}

// phone gives an account a device.
func (st stage) phone(a blackbox.Account, me blackbox.Headers) blackbox.Pocket {
	st.T.Helper()
	return blackbox.Enroll(st.T, st.Node, a, me["x-auth"], device.ES256, "")
}

// app gives an account an authenticator.
func (st stage) app(a blackbox.Account, me blackbox.Headers) *blackbox.Authenticator {
	st.T.Helper()
	return blackbox.Enrolled(st.T, st.Node, a, me)
}

// withApp returns an account that is logged in and has an authenticator.
func (st stage) withApp() (blackbox.Account, blackbox.Headers, *blackbox.Authenticator) {
	st.T.Helper()
	a, me := st.known()
	return a, me, st.app(a, me)
}

// refusesUsed fails the test unless a challenge refuses a used code, and accepts the next.
func (st stage) refusesUsed(f blackbox.Flow, app *blackbox.Authenticator, used string) {
	st.T.Helper()
	st.Complete(f, f.Method(st.T, "TOTP"), used).Is(st.T, 422, "OTP_INVALID")
	st.Complete(f, f.Method(st.T, "TOTP"), app.Next(st.T)).Is(st.T, 200, "")
}

// alive fails the test unless the service answers as usual.
func (st stage) alive() { st.T.Helper(); st.Ask("GET", blackbox.KeysPath, nil, nil).Is(st.T, 200, "") }

// banned blocks one address from one public path, and returns a place there.
func (st stage) banned() blackbox.Place {
	st.T.Helper()
	other := st.at(st.T)
	blackbox.Rule(st.T, st.Node, st.boss, "replay "+other.IP, "blacklist",
		map[string]any{"targetEntities": []string{other.IP}, "targetResources": []string{"GET " + blackbox.KeysPath}})
	other.Ask("GET", blackbox.KeysPath, nil, nil).Is(st.T, 403, "ACCESS_DENIED")
	st.alive() // from an address without a rule
	return other.Place
}

// Published attacks on other products have no effect here. Each is a story, on one of the databases (blackbox.Story).
func TestReplay(t *testing.T) {
	t.Parallel()
	stages := map[string]stage{}
	for _, kind := range blackbox.Databases {
		stages[kind] = newStage(t, kind)
	}
	for _, r := range replays() {
		t.Run(r.id, func(t *testing.T) {
			t.Parallel()
			for _, kind := range blackbox.StoryKinds(t.Name()) {
				t.Run(kind, func(t *testing.T) {
					if r.own != nil {
						r.run(t, newStage(t, kind, r.own...).at(t))
					} else {
						r.run(t, stages[kind].at(t))
					}
				})
			}
		})
	}
}

var replayRow = regexp.MustCompile("(?m)^\\| ([^ |]+) \\| ([^|]+) \\| `TestReplay/([^`|]+)` \\|$")

// The document and the tests have the same entries in the same words, without duplicates.
func TestReplaysAreDocumented(t *testing.T) {
	t.Parallel()
	text := storetest.Value(os.ReadFile(filepath.Join("..", "..", "docs", "replayed.md")))(t)
	listed := map[string]string{}
	for _, row := range replayRow.FindAllStringSubmatch(string(text), -1) {
		if listed[row[1]] != "" || row[1] != row[3] {
			t.Errorf("a row of %s exists twice or names the test %s", row[1], row[3])
		}
		listed[row[1]] = row[2]
	}
	for _, r := range replays() {
		storetest.Equal(t, listed[r.id], r.was, "no row of this:\n|", r.id, "|", "| `TestReplay/", r.id, "` |")
		delete(listed, r.id)
	}
	for id := range listed {
		t.Errorf("%s is listed and not replayed", id)
	}
	if n := len(replays()); n < 60 || strings.Count(string(text), "`TestReplay/") != n {
		t.Errorf("%d are replayed, %d rows are listed", n, strings.Count(string(text), "`TestReplay/"))
	}
}
