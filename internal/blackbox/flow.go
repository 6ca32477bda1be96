package blackbox

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/storetest"
)

// Account is a user who can log in.
type Account struct{ ID, Country, Phone, Mail, Password string }

// NewAccount invents an account; n distinguishes it from others.
func NewAccount(n int) Account {
	return Account{Country: "90", Phone: fmt.Sprintf("532%07d", 1000+n), Mail: fmt.Sprintf("user%d@example.test", n),
		Password: fmt.Sprintf("tall-lantern-%d-orchard", n)}
}

// Number returns the phone number in international form.
func (a Account) Number() string { return "+" + a.Country + a.Phone }

// Seeded reads one of the accounts of development mode: admin or user.
func (s *Site) Seeded(role string) Account {
	s.t.Helper()
	return SeededIn(s.t, s.Dir, role)
}

// SeededIn is Seeded of a data folder.
func SeededIn(t testing.TB, dir, role string) Account {
	t.Helper()
	text := storetest.Value(os.ReadFile(filepath.Join(dir, "dev-login.txt")))(t)
	for _, block := range strings.Split(string(text), "\n\n")[1:] {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if strings.TrimSpace(lines[0]) != role {
			continue
		}
		var a Account
		for _, line := range lines[1:] {
			switch f := strings.Fields(line); f[0] {
			case "countryCode":
				a.Country = f[1]
			case "phoneNumber":
				a.Phone = f[1]
			case "email":
				a.Mail = f[1]
			case "password":
				a.Password = f[1]
			}
		}
		return a
	}
	t.Fatalf("dev-login.txt has no %s:\n%s", role, text)
	return Account{}
}

// Challenge is a challenge as a client sees it.
type Challenge struct {
	ChallengeID string   `json:"challengeId"`
	TS          int64    `json:"ts"`
	Status      string   `json:"status"`
	Expire      int64    `json:"expire"`
	MethodList  []Method `json:"methodList"`
}

// Method is one method of a challenge.
type Method = client.Method

// Method finds a method by its name.
func (c Challenge) Method(t testing.TB, name string) Method {
	t.Helper()
	for _, m := range c.MethodList {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("the challenge has no %s: %+v", name, c.MethodList)
	return Method{}
}

// Flow is a started challenge, with its token.
type Flow struct {
	Challenge
	PAuth string
}

// FlowOf reads the answer of a starter.
func FlowOf(t testing.TB, a Answer) Flow {
	t.Helper()
	return storetest.Value(flowOf(a))(t)
}

func flowOf(a Answer) (Flow, error) {
	var body struct{ Challenge Challenge }
	if a.Status != 200 || json.Unmarshal(a.Body, &body) != nil || body.Challenge.ChallengeID == "" ||
		a.Header.Get("p-auth") == "" {
		return Flow{}, unexpected("not the start of a challenge: %s", a)
	}
	return Flow{body.Challenge, a.Header.Get("p-auth")}, nil
}

// LoginBody returns the body of a login.
func LoginBody(a Account) map[string]string {
	return map[string]string{"countryCode": a.Country, "phoneNumber": a.Phone, "password": a.Password}
}

// SignUpBody returns the body of a registration that accepts the listed contracts.
func (c Client) SignUpBody(t testing.TB, a Account) map[string]any {
	t.Helper()
	var listed struct{ Data []struct{ ID int64 } }
	c.Ok(t, "GET", "/auth/register/contracts", nil, nil).Read(t, &listed)
	contracts := []int64{}
	for _, one := range listed.Data {
		contracts = append(contracts, one.ID)
	}
	return map[string]any{"countryCode": a.Country, "phoneNumber": a.Phone, "email": a.Mail, "name": "Ece",
		"password": a.Password, "passwordVerify": a.Password, "contracts": contracts}
}

// Unexpected is the error of an unexpected answer; connection errors have other types.
type Unexpected struct{ text string }

func (e Unexpected) Error() string { return e.text }

func unexpected(format string, args ...any) error { return Unexpected{fmt.Sprintf(format, args...)} }

// Login sends the password and returns the started challenge.
func (c Client) Login(t testing.TB, a Account) Flow {
	t.Helper()
	return FlowOf(t, c.Do(t, "POST", "/auth/login", LoginBody(a), nil))
}

// TryLogin is Login for goroutines: the error is that of the connection; an answer that starts nothing is an error too.
func (c Client) TryLogin(a Account) (Flow, error) {
	got, err := Patiently(func() (Answer, error) { return c.Try("POST", "/auth/login", LoginBody(a), nil) })
	if err != nil {
		return Flow{}, err
	}
	return flowOf(got)
}

// Letter is a message in the outbox of development mode.
type Letter struct {
	Channel string `json:"channel"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
	Code    string `json:"code"`
	// ChallengeID is the challenge that the code answers.
	ChallengeID string    `json:"challengeId"`
	At          time.Time `json:"at"`
}

// Letters lists the outbox of development mode, newest first; to may be "".
func (c Client) Letters(t testing.TB, to string) []Letter {
	t.Helper()
	return storetest.Value(c.tryLetters(to, 0))(t)
}

// tryLetters is Letters for goroutines. It reads at most limit letters, where that is not 0.
func (c Client) tryLetters(to string, limit int) (ls []Letter, err error) {
	a, err := c.Try("GET", fmt.Sprintf("/dev/outbox?limit=%d&to=%s", limit, url.QueryEscape(to)), nil, nil)
	if err == nil && a.Status != 200 {
		err = unexpected("outbox: %s", a)
	}
	if err == nil {
		err = json.Unmarshal(a.Body, &ls)
	}
	return ls, err
}

// Code returns the newest code that was sent to an account for a method, SMS or MAIL.
func (c Client) Code(t testing.TB, a Account, method string) string {
	t.Helper()
	return storetest.Value(c.TryCode(a, method))(t)
}

// TryCode is Code for goroutines.
func (c Client) TryCode(a Account, method string) (string, error) {
	return c.TryCodeOf(Flow{}, a, method)
}

// CodeOf returns the newest code that was sent to an account for a method of a flow. Codes of other challenges do not
// count, also when they have the same millisecond or the clock was set back.
func (c Client) CodeOf(t testing.TB, f Flow, a Account, method string) string {
	t.Helper()
	return storetest.Value(c.TryCodeOf(f, a, method))(t)
}

// TryCodeOf is CodeOf for goroutines. A flow without an id means every challenge.
func (c Client) TryCodeOf(f Flow, a Account, method string) (string, error) {
	to := a.Number()
	if method == "MAIL" {
		to = a.Mail
	}
	for _, limit := range []int{fewLetters, 0} { // an old code may be behind many others
		ls, err := c.tryLetters(to, limit)
		if err != nil {
			return "", err
		}
		newest := slices.IndexFunc(ls, func(l Letter) bool {
			return len(l.Code) == 6 && (f.ChallengeID == "" || l.ChallengeID == f.ChallengeID)
		})
		if newest < 0 {
			continue
		}
		if c.tell != nil {
			c.tell(fmt.Sprintf("code %s of %s", ls[newest].Code, ls[newest].At.Format("15:04:05.000")))
		}
		return ls[newest].Code, nil
	}
	return "", unexpected("no code of the challenge %q for %s", f.ChallengeID, to)
}

// fewLetters is how many letters usually have the code of the challenge that was started last.
const fewLetters = 8

// WrongFor returns a code that differs from the given one.
func WrongFor(code string) string {
	last := code[len(code)-1]
	return code[:len(code)-1] + string('0'+(last-'0'+1)%10)
}

// CompleteBody returns the body that answers a method.
func CompleteBody(m Method, value string) map[string]string {
	return map[string]string{"methodId": m.ID, "method": m.Name, "value": value}
}

// Paths of the challenge endpoints.
const (
	CompletePath = "/auth/2fa/challenge/complete"
	RenewPath    = "/auth/2fa/challenge/renew"
	ResultPath   = "/auth/2fa/challenge/result"
	SessionsPath = "/auth/sessions"
)

// Complete answers a method of a flow.
func (c Client) Complete(t testing.TB, f Flow, m Method, value string) Answer {
	t.Helper()
	return c.Do(t, "POST", CompletePath, CompleteBody(m, value), Headers{"p-auth": f.PAuth})
}

// TryComplete is Complete for goroutines.
func (c Client) TryComplete(f Flow, m Method, value string) (Answer, error) {
	return c.Try("POST", CompletePath, CompleteBody(m, value), Headers{"p-auth": f.PAuth})
}

// Renew requests a new code.
func (c Client) Renew(t testing.TB, f Flow, m Method) Answer {
	t.Helper()
	return c.Do(t, "POST", RenewPath, map[string]string{"methodId": m.ID, "method": m.Name}, Headers{"p-auth": f.PAuth})
}

// Result requests the outcome.
func (c Client) Result(t testing.TB, f Flow) Answer {
	t.Helper()
	return c.Do(t, "GET", ResultPath, nil, Headers{"p-auth": f.PAuth})
}

// Session logs an account in completely by SMS and returns its token and the session's key.
func (c Client) Session(t testing.TB, a Account) (xAuth, key string) {
	t.Helper()
	f := c.Login(t, a)
	got := c.Complete(t, f, f.Method(t, "SMS"), c.CodeOf(t, f, a, "SMS")).Is(t, 200, "")
	return got.Header.Get("x-auth"), ReadFinal(t, got).ExecResult.Data["sessionKey"]
}

// Auth logs an account in as Session does, and returns the header of its token.
func (c Client) Auth(t testing.TB, a Account) Headers {
	t.Helper()
	token, _ := c.Session(t, a)
	return Headers{"x-auth": token}
}

// Final is the last answer of a flow, and the answer of the result endpoint.
type Final struct {
	Action      string `json:"action"`
	ChallengeID string `json:"challengeId"`
	ExecResult  struct {
		Success bool              `json:"success"`
		Code    string            `json:"code"`
		Message string            `json:"message"`
		Data    map[string]string `json:"data"`
	} `json:"execResult"`
}

// ReadFinal decodes it.
func ReadFinal(t testing.TB, a Answer) (f Final) {
	t.Helper()
	a.Read(t, &f)
	return f
}
