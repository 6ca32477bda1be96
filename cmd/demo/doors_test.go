package demo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// behindDoors are the stores and writes of records that other services, users or the treasury create through an
// endpoint, with that endpoint. Only the services of services.go may use them.
var behindDoors = map[string]string{
	"user.Add":                    "POST /integration/users",
	"integration.Add":             "POST /integration/…",
	"integration.Publish":         "the services that cause an event",
	"transaction.SetDeposit":      "POST /integration/deposits, POST /admin/update-status-transaction",
	"transaction.AddQueued":       "POST /integration/withdrawals",
	"transaction.SetQueued":       "PATCH /integration/withdrawals/{id} and the decisions of the treasury",
	"transaction.SetWithdrawal":   "PATCH /integration/withdrawals/{id} and the decisions of the treasury",
	"persistence.NewCorporate":    "POST /integration/corporate-applications, POST /admin/insert-corporate-user",
	"persistence.NewDocuments":    "POST /document/upload-document, POST /user/update-document",
	"persistence.NewAddressBooks": "POST /asset/withdrawal-addresses",
	"persistence.NewStandings":    "POST /integration/aml-findings",
	"persistence.NewTransactions": "POST /integration/deposits, POST /integration/withdrawals",
	"persistence.NewLevels":       "POST /admin/levels",
	"persistence.NewContracts":    "POST /admin/contracts, POST /admin/contracts/versions",
	"standing.AddFinding":         "POST /integration/aml-findings",
	"user.SetAMLStatus":           "POST /integration/aml-findings",
}

// ownWays are the stores and writes that the demonstration uses itself. Each has the reason why no endpoint creates
// these records, or why it is not used.
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

// A record with an endpoint is created by the service behind it, so that the demonstration cannot hide a missing
// endpoint. A new store or write must be added to one of the tables.
func TestRecordsAreMadeByTheirServices(t *testing.T) {
	used := map[string]string{} // by name: location
	files := storetest.Value(os.ReadDir("."))(t)
	write := regexp.MustCompile(`^(Add|Set|Put|Save|Grant|Revoke|Remember|LoggedIn|Publish|Arrived|Touch|Verify)`)
	store := regexp.MustCompile(`^New[A-Z]`)
	fset := token.NewFileSet()
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") || f.Name() == "services.go" {
			continue
		}
		parsed := storetest.Value(parser.ParseFile(fset, f.Name(), nil, parser.SkipObjectResolution))(t)
		stores := storePackages(parsed)
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, name := (*ast.SelectorExpr)(nil), write
			switch n := n.(type) {
			case *ast.CompositeLit:
				s, _ = n.Type.(*ast.SelectorExpr)
			case *ast.CallExpr:
				s, _ = n.Fun.(*ast.SelectorExpr)
				name = store
			}
			if s == nil || !name.MatchString(s.Sel.Name) {
				return true
			}
			from, _ := s.X.(*ast.Ident)
			switch _, literal := n.(*ast.CompositeLit); {
			case from == nil, !literal && !stores[from.Name], literal && from.Name == "parameter":
				return true
			case !literal:
				used["persistence."+s.Sel.Name] = fset.Position(s.Pos()).String()
			default:
				used[from.Name+"."+s.Sel.Name] = fset.Position(s.Pos()).String()
			}
			return true
		})
	}
	for name, where := range used {
		if door, closed := behindDoors[name]; closed {
			t.Errorf("%s: %s is used, but records come in by %s: use the service in services.go", where, name, door)
		} else if ownWays[name] == "" {
			t.Errorf("%s: say in one of the tables why %s is used", where, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ownWays)) {
		if used[name] == "" {
			t.Errorf("%s is in the table and not used", name)
		}
	}
	if len(used) < 20 {
		t.Errorf("only %d stores and writes were found", len(used))
	}
}

// storePackages are the names by which a file imports packages of persistence.
func storePackages(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, spec := range file.Imports {
		at := strings.Trim(spec.Path.Value, `"`)
		if !strings.HasPrefix(at, "castellan/persistence") {
			continue
		}
		name := path.Base(at)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = true
	}
	return names
}
