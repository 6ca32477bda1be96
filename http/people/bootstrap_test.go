package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/bootstrap"
	"castellan/domain/proof/device"
	"castellan/domain/proof/totp"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpbootstrap "castellan/http/people/bootstrap"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

const setupOrigin = "https://id.example.com"

// installation is an installation without accounts.
type installation struct {
	*bootstrap.Service
	db  *persistence.DB
	now time.Time
}

func install(t *testing.T, db *persistence.DB) *installation {
	t.Helper()
	i := &installation{db: db, now: time.UnixMilli(1_700_000_000_000)}
	now := func() time.Time { return i.now }
	store := people.NewBootstrap(db)
	hasher, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1},
		Slots: 2, Queue: 8})
	storetest.Must(t, err)
	party, _ := passkey.NewParty(setupOrigin, "Castellan", nil)
	i.Service = &bootstrap.Service{Store: store, Users: account.NewUsers(db), Ring: keyringtest.Ring(t, now),
		Changes: admin.Changes{Commit: db, Now: now, Lock: store.Lock}, Hasher: hasher,
		Policy: password.Policy{MinChars: 8, MaxChars: 128}, Party: party, Issuer: "Castellan",
		Tries: password.NewGuards(account.NewPasswordGuards(db), db,
			password.Limit(bootstrap.Requests, bootstrap.Window), now),
		Log: slog.New(slog.DiscardHandler), Now: now}
	return i
}

func (i *installation) link(t *testing.T) string {
	t.Helper()
	token, _, err := i.Create(t.Context(), audit.Operator)
	storetest.Must(t, err)
	return token
}

// setupFrom is a caller of a network.
func setupFrom(ip string) audit.By { return audit.By{UserID: "setup-link", IP: ip} }

var firstAdmin = bootstrap.Details{CountryCode: "90", Phone: "5321234567", Email: "Boss@example.com", Name: "Ada",
	Password: "tall-lantern-orchard", Method: bootstrap.TOTP}

func (i *installation) begin(t *testing.T, token string) (bootstrap.Begun, bootstrap.Proof) {
	t.Helper()
	b := storetest.Value(i.Begin(t.Context(), setupFrom("203.0.113.1"), token, firstAdmin))(t)
	return b, bootstrap.Proof{Token: token, Ticket: b.Ticket, Code: i.code(t, b.Authenticator.Base32)}
}

// code is what the authenticator with a secret shows.
func (i *installation) code(t *testing.T, base32 string) string {
	t.Helper()
	secret := storetest.Value(totp.ParseSecret(base32))(t)
	return totp.CodeAt(secret, totp.StepAt(i.now))
}

func (i *installation) complete(t *testing.T, p bootstrap.Proof) (string, error) {
	return i.Complete(t.Context(), setupFrom("203.0.113.1"), p)
}

// The link makes one administrator with an authenticator, whose code is used up. A repetition after a lost answer gets
// the same answer; every other use of the link is refused.
func TestSetupAuthenticator(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		i := install(t, db)
		token := i.link(t)
		b, p := i.begin(t, token)
		other, late := i.begin(t, token)
		wrong := p
		wrong.Code = i.code(t, other.Authenticator.Base32)
		_, err := i.complete(t, wrong)
		storetest.Wants(t, err, fault.OTPInvalid)
		wrong.Ticket = p.Ticket[:len(p.Ticket)-4] + "AAAA"
		_, err = i.complete(t, wrong)
		storetest.WantsFields(t, err, "ticket")

		id := storetest.Value(i.complete(t, p))(t)
		u := storetest.Value(i.Users.Get(t.Context(), id))(t)
		if u.Email != "boss@example.com" || u.Phone != "+905321234567" || !u.TOTP || u.Roles[0] != user.RoleAdmin {
			t.Errorf("%+v", u)
		}
		d := storetest.Value(proof.NewTOTP(db).Get(t.Context(), id))(t)
		codes := storetest.Value(proof.NewTOTP(db).Codes(t.Context(), id, d.ID))(t)
		storetest.Equal(t, d.LastStep, totp.StepAt(i.now), d)
		storetest.Equal(t, len(codes), len(b.Authenticator.Codes), d)
		storetest.Equal(t, storetest.Value(i.complete(t, p))(t), id, "a repetition")
		storetest.Wants(t, storetest.Err(i.complete(t, late)), fault.NotFound)
		storetest.Wants(t, storetest.Err(i.Begin(t.Context(), setupFrom("203.0.113.1"), token, firstAdmin)), fault.NotFound)
		_, _, err = i.Create(t.Context(), audit.Operator)
		storetest.Wants(t, err, fault.InvalidState)

		did := append(persistencetest.Did(t, db, bootstrap.ActionLink), persistencetest.Did(t, db, bootstrap.ActionAdmin)...)
		if len(did) != 2 || did[0].ActorID != "operator" || did[1].UserID != id || did[1].IP != "203.0.113.1" {
			t.Errorf("%+v", did)
		}
		for _, row := range did {
			storetest.Lacks(t, row.Detail+row.Target, token, "the audit")
		}
	})
}

// A passkey is registered for the domain of the service, and counts as settled.
func TestSetupPasskey(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		i := install(t, db)
		token := i.link(t)
		with := firstAdmin
		with.Method = bootstrap.Passkey
		b := storetest.Value(i.Begin(t.Context(), setupFrom(""), token, with))(t)
		p := bootstrap.Proof{Token: token, Ticket: b.Ticket, About: device.Registration{Brand: "B", Model: "M",
			Platform: "passkey"}}
		_, err := i.complete(t, p)
		storetest.WantsFields(t, err, "attestation")
		p.Attestation = passkeytest.New(t, "id.example.com", "https://evil.example.com").Create(t, b.PublicKey)
		storetest.Wants(t, storetest.Err(i.complete(t, p)), fault.DeviceSignatureInvalid)
		other := storetest.Value(i.Begin(t.Context(), setupFrom(""), token, with))(t)
		key := passkeytest.New(t, "id.example.com", setupOrigin)
		p.Attestation = key.Create(t, other.PublicKey) // the challenge of another ticket
		storetest.Wants(t, storetest.Err(i.complete(t, p)), fault.DeviceSignatureInvalid)
		p.Attestation = key.Create(t, b.PublicKey)
		id := storetest.Value(i.complete(t, p))(t)
		all := storetest.Value(factor.NewPasskeys(db).List(t.Context(), id))(t)
		if len(all) != 1 || !all[0].Counts(i.now, time.Hour) || all[0].Brand != "B" {
			t.Errorf("%+v", all)
		}
		if u, err := i.Users.Get(t.Context(), id); err != nil || !u.Push || u.PasskeyHandle != key.Handle {
			t.Errorf("%+v, %v", u, err)
		}
	})
}

// Every invalid link gets the same answer, and the details of an account are not judged.
func TestInvalidSetupLinks(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		i := install(t, db)
		answers := map[string]bool{}
		refused := func(token string) {
			t.Helper()
			_, err := i.Begin(t.Context(), setupFrom("203.0.113.1"), token, bootstrap.Details{})
			storetest.Wants(t, err, fault.NotFound)
			answers[err.Error()] = true
		}
		refused("") // there is no link
		first := i.link(t)
		refused("")
		refused(first + "A")
		second := i.link(t)
		refused(first)
		_, p := i.begin(t, second)
		i.now = i.now.Add(bootstrap.Life - time.Millisecond)
		i.begin(t, second)
		i.now = i.now.Add(time.Millisecond)
		refused(second)
		storetest.Wants(t, storetest.Err(i.complete(t, p)), fault.NotFound)

		third := i.link(t)
		_, p = i.begin(t, third)
		u := user.New("u1", i.now)
		u.Email, u.Roles = "other@example.com", []string{user.RoleAdmin}
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
		refused(third)
		storetest.Wants(t, storetest.Err(i.complete(t, p)), fault.NotFound)
		storetest.Equal(t, len(answers), 1, answers)
	})
}

// Of concurrent tickets of one link, one makes an administrator.
func TestOneAdministratorForEachLink(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		i := install(t, db)
		token := i.link(t)
		var proofs [4]bootstrap.Proof
		for n := range proofs {
			details := firstAdmin
			details.Email, details.Phone = string(rune('a'+n))+"@example.com", "532123456"+string(rune('0'+n))
			b := storetest.Value(i.Begin(t.Context(), setupFrom("203.0.113.1"), token, details))(t)
			proofs[n] = bootstrap.Proof{Token: token, Ticket: b.Ticket, Code: i.code(t, b.Authenticator.Base32)}
		}
		won := storetest.Race(t, len(proofs), fault.NotFound, func(n int) error {
			return storetest.Err(i.Complete(context.WithoutCancel(t.Context()), setupFrom("203.0.113.1"), proofs[n]))
		})
		holders := storetest.Value(i.Users.Holders(t.Context()))(t)
		storetest.Equal(t, won, 1, holders)
		storetest.Equal(t, len(holders[user.RoleAdmin]), 1, holders)
	})
}

// With a valid link every invalid field is named. The requests of a network are limited, of other networks not.
func TestSetupRequestsAreLimited(t *testing.T) {
	i := install(t, persistencetest.SQLite(t))
	token := i.link(t)
	_, err := i.Begin(t.Context(), setupFrom("203.0.113.1"), token, bootstrap.Details{CountryCode: "90", Email: "x",
		Phone: "x", Name: "\x00", Password: "short", Method: bootstrap.TOTP})
	storetest.WantsFields(t, err, "phoneNumber email name password")
	for range bootstrap.Requests - 1 {
		_, err := i.Begin(t.Context(), setupFrom("203.0.113.1"), "wrong", firstAdmin)
		storetest.Wants(t, err, fault.NotFound)
	}
	storetest.Wants(t, storetest.Err(i.Begin(t.Context(), setupFrom("203.0.113.1"), token, firstAdmin)), fault.RateLimited)
	storetest.Wants(t, storetest.Err(i.complete(t, bootstrap.Proof{Token: token})), fault.RateLimited)
	storetest.Must(t, storetest.Err(i.Begin(t.Context(), setupFrom("198.51.100.1"), token, firstAdmin)))
}

// D-EXT-20: the page of a setup link makes an administrator with one of the two factors.
func TestSetupOfTheFirstAdministrator(t *testing.T) {
	for _, method := range []bootstrap.Method{bootstrap.TOTP, bootstrap.Passkey} {
		i := install(t, persistencetest.SQLite(t))
		token := i.link(t)
		s := apitest.Serve(t, edge.Options{}, httpbootstrap.Group{Service: i.Service}).As("anonymous").Below("/auth/setup/")
		begin := func(token string) string {
			return fmt.Sprintf(`{"token":%q,"email":"Boss@example.com","countryCode":"90","phoneNumber":"5321234567",`+
				`"name":"Ada","surname":"Lovelace","password":"tall-lantern-orchard","method":%q}`, token, method)
		}
		s.Wants("POST begin", begin("other"), 404, "NOT_FOUND")
		status, answer := s.Call("POST begin", begin(token))
		var b struct {
			Data struct {
				Ticket        string
				PublicKey     json.RawMessage
				Authenticator *struct {
					Base32, OTPAuthURL, QRDataURL string
					RecoveryCodes                 []string
				}
			}
		}
		if err := json.Unmarshal([]byte(answer), &b); err != nil || status != 200 {
			t.Fatalf("%s: %d %s, %v", method, status, answer, err)
		}
		proof := `,"brand":"Chromium","model":"Linux","attestation":`
		if a := b.Data.Authenticator; method == bootstrap.TOTP {
			if len(b.Data.PublicKey) > len("null") || !strings.HasPrefix(a.OTPAuthURL, "otpauth://totp/") ||
				!strings.Contains(a.OTPAuthURL, a.Base32) || len(a.RecoveryCodes) == 0 ||
				!strings.HasPrefix(a.QRDataURL, "data:image/png;base64,") {
				t.Errorf("%+v", a)
			}
			proof = `,"value":"` + i.code(t, a.Base32) + `"`
		} else if a != nil {
			t.Errorf("%+v", a)
		} else {
			proof += string(passkeytest.New(t, "id.example.com", setupOrigin).Create(t, b.Data.PublicKey))
		}
		all := storetest.Value(i.Users.List(t.Context(), "", 10))(t)
		storetest.Equal(t, len(all), 0, "accounts before the end")
		s.Wants("POST complete", fmt.Sprintf(`{"token":%q,"ticket":"x"%s}`, token, proof), 400, "INVALID_FIELD ticket")
		status, done := s.Call("POST complete", fmt.Sprintf(`{"token":%q,"ticket":%q%s}`, token, b.Data.Ticket, proof))
		all = storetest.Value(i.Users.List(t.Context(), "", 10))(t)
		if len(all) != 1 || status != 200 || done != `{"data":{"userId":"`+all[0].ID+`"}}` ||
			all[0].FullName() != "Ada Lovelace" {
			t.Fatalf("%s: %d %s, %+v", method, status, done, all)
		}
		keys := storetest.Value(factor.NewPasskeys(i.db).List(t.Context(), all[0].ID))(t)
		if wants := method == bootstrap.Passkey; wants != (len(keys) == 1) || wants &&
			keys[0].Brand+keys[0].Model+keys[0].Platform != "ChromiumLinuxpasskey" {
			t.Errorf("%s: %+v", method, keys)
		}
		if did := persistencetest.Did(t, i.db, bootstrap.ActionAdmin); len(did) != 1 || did[0].ActorID != "setup-link" {
			t.Errorf("%+v", did)
		}
	}
}
