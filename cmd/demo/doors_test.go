package demo

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// ownWays are the stores and writes that the demonstration uses itself. Each has the reason why no endpoint creates
// these records, or why it is not used. Records that other services, users or the treasury create through an endpoint,
// such as accounts, deposits, withdrawals, documents, findings and contracts, are made by the services of services.go.
var ownWays = map[string]string{
	"transaction.AddDeposit":       "history: final and booked with its transfer, as an import of past years",
	"transaction.AddWithdrawal":    "history: final and booked with its transfer, as an import of past years",
	"transaction.AddProcess":       "history: of a withdrawal that is final",
	"transaction.AddAddress":       "history: the address of an account whose deposits are imported",
	"ledger.AddAsset":              "no endpoint: the first account of an asset opens it",
	"blockage.Add":                 "history: its hold is in the ledger's import, in the order of its instants",
	"session.Remember":             "no endpoint: a login leaves it, and these people never log in",
	"session.RememberRefused":      "no endpoint: a refused login leaves it, and these people never log in",
	"user.LoggedIn":                "no endpoint: a login leaves it, and these people never log in",
	"user.SetPassword":             "no endpoint sets a password without a message to the owner",
	"profile.AddMailChange":        "no endpoint: a change of the address leaves it, a year ago",
	"provider.Arrived":             "no endpoint: a job reads the providers",
	"notification.Add":             "no endpoint without sending: jobs notify real people by push, mail and SMS",
	"geofilter.Add":                "the endpoint asks the owner for a second factor",
	"persistence.NewAgreements":    "publishing mails everyone; accepting needs a session of the owner",
	"persistence.NewAnnouncements": "the endpoint takes uploaded images; texts are checked as it does",
	"persistence.NewCurrencies":    "reference data of a new installation, made before the accounts",
	"persistence.NewParameters":    "parameters through their own shape checks, with an audit row",
	"persistence.NewRates":         "no endpoint: jobs fetch rates",
	"persistence.NewDecisions":     "history: decisions of the past, without messages to people",
	"persistence.NewDropdowns":     "read only: the options of a new installation",
	"persistence.NewIdentities":    "the endpoint answers the owner; the options are those of a new installation",
	"persistence.NewLedger":        "read only, and the closing of days as the service does it",
	"persistence.NewUsers":         "read only",
	"persistence.NewFirewall":      "rules with labels of their own, checked as the endpoint does, with audit rows",
	"persistence.NewMFA":           "the store of mfa.Admin, which makes the action and the policy of the demo shop",
	"persistence.NewGateways":      "the store of gateway.Admin, which makes the route of the demo shop",
	"persistence.NewResources":     "pages of a back office; roles and grants are made by resource.Admin",
	"persistence.NewDeploys":       "the store of approval.Service, which makes the requests",
	"persistence.NewVPNs":          "the store of approval.Service, which makes the requests",
	"persistence.NewJobs":          "no endpoint: jobs of each state that no node works on",
	"persistence.NewNotifications": "the marks of what was read; reading needs a session of the owner",
	"persistence.NewIntegration":   "read only: the record of an external id",
}

var (
	// stored matches the packages of stores that a file imports: their name there, if it is another one, and the path.
	stored   = regexp.MustCompile(`(?m)^\t(?:(\w+) )?"castellan/(persistence[/\w]*)"$`)
	newStore = regexp.MustCompile(`\b(\w+)\.(New[A-Z]\w*)\(`)
	newWrite = regexp.MustCompile(
		`\b(\w+\.(?:Add|Set|Put|Save|Grant|Revoke|Remember|LoggedIn|Publish|Arrived|Touch|Verify)(?:[A-Z]\w*)?)\{`)
)

// A record with an endpoint is created by the service behind it, so that the demonstration cannot hide a missing
// endpoint. A new store or write must be added to the table, or used by a service.
func TestRecordsAreMadeByTheirServices(t *testing.T) {
	used := map[string]string{} // by name: its file
	for _, file := range storetest.Value(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(file, "_test.go") || file == "services.go" {
			continue
		}
		text := string(storetest.Value(os.ReadFile(file))(t))
		stores := map[string]bool{}
		for _, of := range stored.FindAllStringSubmatch(text, -1) {
			stores[cmp.Or(of[1], path.Base(of[2]))] = true
		}
		for _, call := range newStore.FindAllStringSubmatch(text, -1) {
			if stores[call[1]] {
				used["persistence."+call[2]] = file
			}
		}
		for _, write := range newWrite.FindAllStringSubmatch(text, -1) {
			used[write[1]] = file
		}
	}
	for name, file := range used {
		if ownWays[name] == "" {
			t.Errorf("%s: say why %s is used, or let a service of services.go make the record", file, name)
		}
	}
	for name := range ownWays {
		if used[name] == "" {
			t.Errorf("%s is in the table and not used", name)
		}
	}
}
