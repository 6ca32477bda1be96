package currency

import "context"

// seeded are the pairs of a new installation (D-WAD-05).
var seeded = []struct{ currency, network string }{
	{"BTC", "BTC"}, {"ETH", "ETH"}, {"USDT", "ETH"}, {"USDT", "TRX"}, {"TRX", "TRX"}, {"XRP", "XRP"}, {"SOL", "SOL"},
	{"USDC", "SOL"},
}

// seededCurrencies have the name, the decimals and the first network of each currency.
var seededCurrencies = map[string]struct{ name, decimals, home string }{
	"BTC": {"Bitcoin", "8", "BTC"}, "ETH": {"Ether", "18", "ETH"}, "USDT": {"Tether USD", "6", "ETH"},
	"TRX": {"TRON", "6", "TRX"}, "XRP": {"XRP", "6", "XRP"}, "SOL": {"Solana", "9", "SOL"},
	"USDC": {"USD Coin", "6", "SOL"},
}

var networkNames = map[string]string{"BTC": "Bitcoin", "ETH": "Ethereum", "TRX": "TRON", "XRP": "XRP Ledger",
	"SOL": "Solana"}

// Explorers are the web addresses of transactions on the seeded networks, with {txId} in place of the id (D-PRC-04).
var Explorers = map[string]string{
	"BTC": "https://mempool.space/tx/{txId}",
	"ETH": "https://etherscan.io/tx/{txId}",
	"TRX": "https://tronscan.org/#/transaction/{txId}",
	"XRP": "https://xrpscan.com/tx/{txId}",
	"SOL": "https://solscan.io/tx/{txId}",
}

// Seed writes the content of a new installation, all enabled for deposits and withdrawals. The caller ensures that it
// runs once, in one transaction.
func Seed(ctx context.Context, s Store) (err error) {
	currencies, networks := map[string]int64{}, map[string]int64{}
	for _, p := range seeded {
		of := seededCurrencies[p.currency]
		if _, ok := currencies[p.currency]; !ok {
			if currencies[p.currency], err = s.AddCurrency(ctx,
				Currency{Code: p.currency, Name: of.name, Network: of.home, Deposit: true, Withdraw: true,
					Active: true}); err != nil {
				return err
			}
		}
		if _, ok := networks[p.network]; !ok {
			if networks[p.network], err = s.AddNetwork(ctx,
				Network{Code: p.network, Name: networkNames[p.network], Active: true}); err != nil {
				return err
			}
		}
		if _, err := s.AddPair(ctx, Pair{CurrencyID: currencies[p.currency], NetworkID: networks[p.network],
			FormatPrecision: of.decimals, DepositAddress: true, Deposit: true, Withdraw: true,
			Active: true}); err != nil {
			return err
		}
	}
	return nil
}
