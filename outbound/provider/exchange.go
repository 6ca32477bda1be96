// Package provider reads accounts of the house at other platforms: over the signed REST interface of a spot exchange,
// in its most common form, or from a file.
//
// The one idea: an answer is read as text and checked balance by balance; no amount becomes a float. Start reading at
// Exchange.Fetch.
package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"castellan/domain/money/provider"
	"castellan/outbound/fetch"
)

// Config describes an account at an exchange.
type Config struct {
	URL         string // the part before /api/v3/account
	Header      string // carries the key
	Key, Secret string
	CAFile      string // trusted certificates (PEM); "": those of the system
	Timeout     time.Duration
	Now         func() time.Time
}

const (
	accountPath = "/api/v3/account"
	// windowMs is how long the exchange accepts a signed request.
	windowMs = "5000"
)

// Exchange reads one account at an exchange. It is safe for concurrent use.
type Exchange struct {
	cfg    Config
	client *fetch.Client
}

var _ provider.Source = (*Exchange)(nil)

// NewExchange checks cfg. It opens no connection.
func NewExchange(cfg Config) (*Exchange, error) {
	if err := errors.Join(fetch.Address(cfg.URL), fetch.Header(cfg.Key)); err != nil {
		return nil, err
	}
	if cfg.Key == "" || cfg.Secret == "" {
		return nil, errors.New("an account needs a key and a secret")
	}
	cfg.URL = strings.TrimRight(cfg.URL, "/") + accountPath
	client, err := fetch.New(cfg.CAFile, cfg.Timeout, cfg.Now)
	return &Exchange{cfg, client}, err
}

// Fetch reads the account that the key belongs to.
func (e *Exchange) Fetch(ctx context.Context) ([]provider.Account, error) {
	query := "timestamp=" + strconv.FormatInt(e.cfg.Now().UnixMilli(), 10) + "&recvWindow=" + windowMs
	mac := hmac.New(sha256.New, []byte(e.cfg.Secret))
	mac.Write([]byte(query))
	address := e.cfg.URL + "?" + query + "&signature=" + hex.EncodeToString(mac.Sum(nil))
	var a provider.Account
	err := e.client.Read(ctx, address, e.cfg.Header, e.cfg.Key, func(body []byte) error {
		var told struct{ Balances *[]told }
		if json.Unmarshal(body, &told) != nil || told.Balances == nil {
			return errors.New(`the answer is not {"balances":[…]}`)
		}
		a = account("", *told.Balances)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []provider.Account{a}, nil
}

// told is a balance in an answer: amounts are strings or numbers.
type told struct {
	Asset        string
	Free, Locked json.RawMessage
}

// account keeps the valid balances, and counts the others.
func account(name string, all []told) provider.Account {
	a := provider.Account{Name: name}
	for _, one := range all {
		b, ok := provider.Read(one.Asset, strings.Trim(string(one.Free), `"`), strings.Trim(string(one.Locked), `"`))
		if !ok {
			a.LeftOut++
			continue
		}
		a.Balances = append(a.Balances, b)
	}
	return a
}
