package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Service returns a client that authenticates as a service client: key is the output of castellan service-key add
// (D-INT-01). The methods of this file are for it. Each is repeated automatically when an answer is lost, because an
// equal repetition gets the same record (D-INT-02).
func (c *Client) Service(key string) *Client {
	return &Client{URL: c.URL, HTTP: c.HTTP, serviceKey: key}
}

// Deposit is a deposit that a wallet reports. Money is encoded as a decimal number, never as a floating point number.
type Deposit struct {
	ExternalID   string          `json:"externalId"`
	UserID       string          `json:"userId,omitempty"` // or ToAddress, if the service has it
	CurrencyCode string          `json:"currencyCode"`
	Network      string          `json:"network"`
	Amount       json.Number     `json:"amount"`
	TxID         string          `json:"txId"`
	ToAddress    string          `json:"toAddress,omitempty"`
	FromAddress  string          `json:"fromAddress,omitempty"`
	SenderInfo   json.RawMessage `json:"senderInfo,omitempty"`
	Status       string          `json:"status"` // waiting or finalized
}

// DepositRecord is a deposit as stored by the service.
type DepositRecord struct {
	ID         string      `json:"id"`
	ExternalID string      `json:"externalId"`
	Status     string      `json:"status"` // such as waitingSenderInfo
	StatusCode int         `json:"statusCode"`
	UserID     string      `json:"userId"`
	Amount     json.Number `json:"amount"`
	CreatedAt  time.Time   `json:"createdAt"`
}

// WithdrawalRequest requests a withdrawal of a user, to Address or to the entry AddressID of the user's address book.
type WithdrawalRequest struct {
	ExternalID   string      `json:"externalId"`
	UserID       string      `json:"userId,omitempty"`
	CurrencyCode string      `json:"currencyCode"`
	Network      string      `json:"network"`
	Amount       json.Number `json:"amount"`
	Address      string      `json:"address,omitempty"`
	AddressTag   string      `json:"addressTag,omitempty"`
	AddressID    json.Number `json:"addressId,omitempty"`
}

// WithdrawalRecord is a withdrawal as stored by the service.
type WithdrawalRecord struct {
	ID         string      `json:"id"`
	ExternalID string      `json:"externalId"`
	Status     string      `json:"status"` // such as queued; docs/neighbours.md lists all of them
	StatusCode int         `json:"statusCode"`
	Amount     json.Number `json:"amount"`
	Fee        json.Number `json:"fee"`
	TxID       string      `json:"txId"`
	Reason     string      `json:"reason"`
	CreatedAt  time.Time   `json:"createdAt"`
	Hold       *Hold       `json:"hold"`  // why the wallet cannot claim it; nil: it is not held
	Order      string      `json:"order"` // of a claim with a token: see VerifyOrder
}

// Hold is why and since when a withdrawal is held.
type Hold struct {
	Reason string    `json:"reason"` // such as ACCOUNT
	Since  time.Time `json:"since"`
}

// WithdrawalMove is a status change by the wallet: sent needs TxID, failed needs Reason. ClaimToken is a random text of
// the worker that claims a withdrawal with processing; it needs the same text to repeat the claim, and no other worker
// gets the claim. If the withdrawal has another
// status than From, the service refuses the change, unless it is a repetition; "" permits any status.
type WithdrawalMove struct {
	From   string `json:"from,omitempty"`
	Status string `json:"status"`
	TxID   string `json:"txId,omitempty"`
	Reason string `json:"reason,omitempty"`

	ClaimToken string `json:"claimToken,omitempty"`
}

// IntegrationEvent is an event for another service.
type IntegrationEvent struct {
	ID        string            `json:"id"`
	Type      string            `json:"type"` // such as withdrawal.queued
	UserID    string            `json:"userId"`
	Data      map[string]string `json:"data"`
	CreatedAt time.Time         `json:"createdAt"`
}

// record is an answer with one record.
type record[T any] struct {
	Data T `json:"data"`
}

// ReportDeposit reports a deposit, supplies its sender, or finalizes it. Errors: *Error.
func (c *Client) ReportDeposit(ctx context.Context, d Deposit) (DepositRecord, error) {
	return repeat[DepositRecord](ctx, c, http.MethodPost, "/integration/deposits", d)
}

// RequestWithdrawal puts a withdrawal into the queue. Errors: *Error, such as LIMIT_EXCEEDED.
func (c *Client) RequestWithdrawal(ctx context.Context, r WithdrawalRequest) (WithdrawalRecord, error) {
	return repeat[WithdrawalRecord](ctx, c, http.MethodPost, "/integration/withdrawals", r)
}

// MoveWithdrawal reports a status change. Errors: *Error; INVALID_STATE for a change that the present status does not
// allow, or that names another status in From.
func (c *Client) MoveWithdrawal(ctx context.Context, id string, m WithdrawalMove) (WithdrawalRecord, error) {
	return repeat[WithdrawalRecord](ctx, c, http.MethodPatch, "/integration/withdrawals/"+url.PathEscape(id), m)
}

// Withdrawal reads a withdrawal by its id, not by its external id. Errors: *Error.
func (c *Client) Withdrawal(ctx context.Context, id string) (WithdrawalRecord, error) {
	return repeat[WithdrawalRecord](ctx, c, http.MethodGet, "/integration/withdrawals/"+url.PathEscape(id), nil)
}

// IntegrationEvents lists up to limit events after a cursor, oldest first; "" is the beginning. It returns the next
// cursor: store it together with the effects of the events.
func (c *Client) IntegrationEvents(ctx context.Context, cursor string, limit int) ([]IntegrationEvent, string, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	var feed struct {
		Data   []IntegrationEvent `json:"data"`
		Cursor string             `json:"cursor"`
	}
	err := c.Call(ctx, http.MethodGet, "/integration/events?"+q.Encode(), nil, &feed)
	return feed.Data, feed.Cursor, err
}

func repeat[T any](ctx context.Context, c *Client, method, path string, in any) (T, error) {
	var r record[T]
	err := c.Call(ctx, method, path, in, &r, repeatable)
	return r.Data, err
}
