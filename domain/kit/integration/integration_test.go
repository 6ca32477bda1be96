package integration_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/storetest"
)

var errDown = errors.New("the database is down")

// claims is a store of claims by their external ids.
type claims struct {
	integration.Store
	all map[string]integration.Claim
	err error
}

func (c *claims) Claim(_ context.Context, kind integration.Kind, externalID string) (integration.Claim, error) {
	if found, known := c.all[string(kind)+"/"+externalID]; known || c.err != nil {
		return found, c.err
	}
	return integration.Claim{}, fault.New(fault.RecordNotFound, "there is no such claim")
}

func claim(body string) integration.Claim {
	return integration.Claim{Kind: integration.Deposits, ExternalID: "e", Digest: integration.Digest(body), RecordID: "r"}
}

// once makes the record of a claim, or reads it.
func (c *claims) once(ctx context.Context, body string, made func() error) (string, bool, error) {
	return integration.Once(ctx, c, claim(body),
		func(_ context.Context, id string) (string, error) { return "read " + id, nil },
		func(context.Context) (string, error) { return "made", made() })
}

// The loser of a race reads the record of the winner. Inside a transaction it cannot: the transaction must end.
func TestOnceInARace(t *testing.T) {
	taken := fault.New(fault.RecordAlreadyExist, "taken")
	c := &claims{all: map[string]integration.Claim{}}
	lose := func() error { c.all["deposit/e"] = claim("body"); return taken }
	if got, repeated, err := c.once(t.Context(), "body", lose); got != "read r" || !repeated || err != nil {
		t.Errorf("%s, %t, %v", got, repeated, err)
	}
	clear(c.all)
	inside, _ := commit.Hooks(t.Context())
	_, repeated, err := c.once(inside, "body", lose)
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	if repeated {
		t.Error("read inside a transaction")
	}
	clear(c.all)
	_, _, err = c.once(t.Context(), "body", func() error { return taken }) // by another unique key
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	if _, _, err = c.once(t.Context(), "body", func() error { return errDown }); !errors.Is(err, errDown) {
		t.Error(err)
	}
	_, _, err = c.once(t.Context(), "body", func() error { c.err = errDown; return taken })
	storetest.Is(t, err, errDown, "the claim cannot be read again")
}

// Equal values have equal digests. A fence names the external id with its kind.
func TestDigest(t *testing.T) {
	if !bytes.Equal(integration.Digest([]int{1}), integration.Digest([]int{1})) ||
		bytes.Equal(integration.Digest([]int{1}), integration.Digest([]int{2})) {
		t.Error("digests do not follow their values")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a value without JSON has a digest")
			}
		}()
		integration.Digest(func() {})
	}()
	if key, version := (integration.Rebind{Kind: integration.Users, ExternalID: "e"}).Fence(); key != "user/e" ||
		version != 0 {
		t.Errorf("%s, %d", key, version)
	}
}
