// Package inbox summarizes the queues of pending work, so that an operator sees all of them by one request.
//
// The one idea: a queue has the permission of its list. A caller sees the summary of a queue exactly if the caller may
// read the list.
//
// Start reading at Queues.
package inbox

import (
	"context"

	"castellan/domain/kit/page"
)

// Queue names a queue of pending work.
type Queue string

// The queues.
const (
	Documents    Queue = "documents"
	AML          Queue = "aml"
	Deposits     Queue = "deposits"
	Withdrawals  Queue = "withdrawals"
	Held         Queue = "held" // withdrawals that wait for approval, also counted by Withdrawals
	Approvals    Queue = "approvals"
	Deploys      Queue = "deploys"
	VPN          Queue = "vpn"
	Applications Queue = "applications"
)

// Queues lists the queues, each with the endpoint of its list.
var Queues = []struct {
	Queue    Queue
	Endpoint string
}{
	{Documents, "GET /user/get-documents"},
	{AML, "GET /admin/user/get-users-without-aml-confirmed"},
	{Deposits, "GET /admin/get-waiting-info-transactions"},
	{Withdrawals, "GET /admin/get-withdrawal-crypto-queue"},
	{Held, "GET /admin/get-withdrawal-crypto-queue"},
	{Approvals, "GET /admin/approvals"},
	{Deploys, "GET /admin/deploy-request"},
	{VPN, "GET /admin/vpn-request"},
	{Applications, "GET /admin/get-corporate-application"},
}

// Most is the largest count of a queue.
const Most = 1000

// Store reads the queues.
type Store interface {
	// Backlog counts the pending entries of a queue, up to Most. An AML entry is created with the latest finding about
	// its account; without a finding, with the account.
	Backlog(ctx context.Context, q Queue) (page.Backlog, error)
}
