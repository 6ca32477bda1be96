package budget_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"castellan/cmd/app"
	"castellan/config"
	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/proof/device"
	"castellan/domain/proof/totp"
)

// person is an account that the test logs in to.
type person struct {
	ID       string
	Phone    string
	Method   string // of the second factor: SMS, TOTP or PUSH
	Secret   []byte // of the authenticator
	DeviceID string
	Key      []byte // of the device, PKCS #8

	from string // the address of the client: each person has a separate network
}

const (
	countryCode = "90"
	password    = "tall-lantern-orchard"
	pushTarget  = `{"type":"webhook","url":"https://push.example.test/wake"}`
)

// seed creates the accounts of all rounds and an administrator, whose second factor is TOTP, and writes them to out.
func seed(ctx context.Context, cfg config.Config, out io.Writer) error {
	hasher, err := app.NewHasher(cfg)
	if err != nil {
		return err
	}
	hash, err := hasher.Hash(ctx, password)
	if err != nil {
		return err
	}
	d, err := app.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer d.Close()
	var all []person
	add := func(method string, roles ...string) error {
		p := person{Method: method, Phone: fmt.Sprintf("532%07d", 1000+len(all))}
		writes, err := p.make(d, hash, roles)
		if err != nil {
			return err
		}
		all = append(all, p)
		return d.DB.Commit(ctx, writes...)
	}
	if err := add("TOTP", user.RoleAdmin); err != nil {
		return err
	}
	for range rounds {
		for _, method := range methods {
			for range perFlow + warmUps {
				if err := add(method); err != nil {
					return err
				}
			}
		}
	}
	return json.NewEncoder(out).Encode(all)
}

// make creates the rows of the account.
func (p *person) make(d *app.Deployment, hash string, roles []string) ([]commit.Write, error) {
	now := time.Now()
	u := user.New(id.New(now), now)
	p.ID, u.Roles, u.CountryCode, u.Name = u.ID, roles, countryCode, "Budget"
	u.Email, u.EmailVerified = p.Phone+"@budget.castellan.test", true
	var err error
	if u.Phone, err = user.Canonical(countryCode, p.Phone); err != nil {
		return nil, err
	}
	switch p.Method {
	case "TOTP":
		u.TOTP = true
	case "PUSH":
		u.Push = true
	}
	writes := []commit.Write{user.Add{User: u, PasswordHash: hash}}
	switch p.Method {
	case "TOTP":
		p.Secret = make([]byte, 20)
		rand.Read(p.Secret)
		def := totp.Definition{UserID: u.ID, ID: id.New(now), CreatedAt: now}
		def.Sealed = d.Ring.Seal(p.Secret, totp.SecretData(u.ID, def.ID))
		writes = append(writes, totp.Define{Definition: def})
	case "PUSH":
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		if p.Key, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			return nil, err
		}
		public, _ := device.PublicKey(key)
		target, err := device.ParseTarget([]byte(pushTarget), false)
		if err != nil {
			return nil, err
		}
		p.DeviceID = id.New(now)
		writes = append(writes, device.Add{Device: device.Device{ID: p.DeviceID, UserID: u.ID, Key: public, Brand: "Acme",
			Model: "One", Platform: "android", Status: device.Active, CreatedAt: now,
			Target: d.Ring.Seal([]byte(target), device.TargetData(u.ID, p.DeviceID))}})
	}
	return writes, nil
}
