package transaction

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/money/currency"
)

// OrderType is the JOSE type of a signed order.
const OrderType = "withdrawal-order+jwt"

// A signed order is valid for orderLife. Within orderStep of its claim a repetition gets the same text; a later one is
// valid for at least the rest.
const (
	orderLife = 10 * time.Minute
	orderStep = 5 * time.Minute
)

// Order is what a withdrawal tells the wallet to send. Its digest is that of its JSON, whose members have this order.
type Order struct {
	Account    string `json:"account"`
	Address    string `json:"address"`
	Amount     string `json:"amount"`
	Currency   string `json:"currency"`
	ExternalID string `json:"externalId"`
	Fee        string `json:"fee"`
	Network    string `json:"network"`
	Tag        string `json:"tag"` // "" for none
}

// Digest returns the SHA-256 of the order, in base64url.
func (o Order) Digest() string {
	text, _ := json.Marshal(o) // strings: cannot fail
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// order builds the order of a withdrawal from its rows.
func (s *Withdrawals) order(o Outgoing) Order { return orderOf(s.Currencies.Catalog(), o) }

func orderOf(c *currency.Catalog, o Outgoing) Order {
	pair, _ := c.Pair(o.Queued.Asset)
	return Order{Account: o.Queued.UserID, Address: o.Queued.Address, Amount: o.Withdrawal.Amount.String(),
		Currency: pair.Currency.Code, ExternalID: o.Queued.ExternalID, Fee: o.Fee().String(),
		Network: pair.Network.Code, Tag: o.Queued.AddressTag}
}

// altered reports whether the rows of a withdrawal differ from what was requested. Rows of earlier versions have no
// digest.
func (s *Withdrawals) altered(o Outgoing) bool {
	w, q := o.Withdrawal, o.Queued
	return w.OrderDigest != "" && (s.order(o).Digest() != w.OrderDigest || w.ToAddress != q.Address ||
		w.UserID != q.UserID || w.Asset != q.Asset)
}

// errAltered refuses to resume a withdrawal whose rows were altered.
var errAltered = fault.New(fault.InvalidState, "the withdrawal differs from its order; it can only be cancelled")

// errClaimed refuses the claim of a withdrawal that another worker has claimed.
var errClaimed = fault.New(fault.InvalidState, "another worker has claimed the withdrawal")

// claimOf returns the stored form of a claim token; "" for none.
func claimOf(token string) string {
	if token == "" {
		return ""
	}
	return hashed("claim\n" + token)
}

// claimed reports whether a token is that of the claim of an entry.
func (q Queued) claimed(token string) bool {
	return subtle.ConstantTimeCompare([]byte(q.Claim), []byte(claimOf(token))) == 1
}

// orderClaims are the claims of a signed order.
type orderClaims struct {
	Issuer    string  `json:"iss"`
	Audience  string  `json:"aud"` // the service that has claimed it
	ID        string  `json:"jti"` // of the withdrawal
	Subject   string  `json:"sub"` // the account
	IssuedAt  int64   `json:"iat"`
	ExpiresAt int64   `json:"exp"`
	Order     Order   `json:"order"`
	Digest    string  `json:"digest"`
	Owner     *string `json:"own"` // the methods with which the owner approved it
	Approvals int     `json:"apr"` // by operators
}

// Sign returns the signed order of a withdrawal that a worker has claimed with a token.
func (s *Withdrawals) Sign(by audit.By, o Outgoing) (string, error) {
	order := s.order(o)
	steps := s.Now().Sub(o.Queued.ClaimedAt) / orderStep
	at := o.Queued.ClaimedAt.Add(max(steps, 0) * orderStep)
	c := orderClaims{Issuer: s.Issuer, Audience: strings.TrimPrefix(by.UserID, audit.ByService), ID: o.Queued.ID,
		Subject: order.Account, IssuedAt: at.Unix(), ExpiresAt: at.Add(orderLife).Unix(), Order: order,
		Digest: order.Digest(), Approvals: o.Queued.Held.Asked().Approved}
	if o.Withdrawal.OwnerMethods != "" {
		c.Owner = &o.Withdrawal.OwnerMethods
	}
	text, err := s.Statements.SignStatement(OrderType, c)
	if err != nil {
		return "", fmt.Errorf("withdrawal %s: %w", o.Queued.ID, err)
	}
	return text, nil
}

// Initiator is who asked for a movement: Owner, "OPERATOR:" with the id of a user, or "SERVICE:" with the name of a
// key. It is "" in rows of earlier versions.
type Initiator string

// Owner is the owner of the account, who has approved the movement by a challenge.
const Owner Initiator = "USER"

// initiatorOf returns the initiator of a request that was made without the owner.
func initiatorOf(by audit.By) Initiator {
	if key, is := strings.CutPrefix(by.UserID, audit.ByService); is {
		return Initiator("SERVICE:" + key)
	}
	return Initiator("OPERATOR:" + by.UserID)
}

// Signed is what an operator has signed before the resume of a withdrawal: the digest of the order that was shown, the
// challenge, and the digest of its intent. All are "" without a challenge.
type Signed struct{ Order, ChallengeID, IntentDigest string }

// errShown refuses a decision about a withdrawal that has changed since its order was shown.
var errShown = fault.New(fault.InvalidState, "the withdrawal differs from the one that was shown")

// Shown returns what the intent of an operator who decides about a withdrawal has: the order, the rules that hold it,
// and how it was requested. digest is that of the order. RECORD_NOT_FOUND.
func (s *Withdrawals) Shown(ctx context.Context, id string) (rows []challenge.Detail, digest string, err error) {
	o, err := s.Get(ctx, id)
	if err != nil {
		return nil, "", err
	}
	order, w := s.order(o), o.Withdrawal
	rows = append([]challenge.Detail{{Key: mfa.HeaderAccount, Value: order.Account}}, order.details(order.Address)...)
	rows = append(rows, challenge.Detail{Key: mfa.HeaderRules, Value: named(o.Queued.Held.Asked().Rules)})
	if w.Initiator == Owner {
		rows = append(rows, challenge.Detail{Key: mfa.HeaderApproved,
			Value: w.OwnerMethods + " " + w.At.UTC().Format(time.RFC3339)})
	} else {
		kind, name, _ := strings.Cut(string(w.Initiator), ":")
		rows = append(rows, challenge.Detail{Key: mfa.HeaderInitiator,
			Value: cmp.Or(strings.TrimSpace(strings.ToLower(kind)+" "+name), "unknown") + ", no owner"})
	}
	return rows, order.Digest(), nil
}

// details returns the rows of an order in an intent. The tag has one of its own, also if there is none.
func (o Order) details(to string) []challenge.Detail {
	return []challenge.Detail{
		{Key: mfa.HeaderAmount, Value: o.Amount + " " + o.Currency + " (" + o.Network + ")"},
		{Key: mfa.HeaderFee, Value: o.Fee + " " + o.Currency},
		{Key: mfa.HeaderAddress, Value: to}, {Key: mfa.HeaderTag, Value: cmp.Or(o.Tag, "none")},
		{Key: mfa.HeaderReference, Value: o.ExternalID}}
}
