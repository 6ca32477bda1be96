package address

// These addresses lose the money that is sent to them (D-WAD-06). Either no owner has their keys, or they are contracts
// of tokens, which do not give back a transfer. Users copy such an address from the page of a token. The sources are
// the issuers' lists of contracts and the explorers of the networks, of November 2026.
var (
	noOwner = []string{
		"0x0000000000000000000000000000000000000000", "0x0000000000000000000000000000000000000001",
		"0x000000000000000000000000000000000000dEaD", "0xdEAD000000000000000042069420694206942069",
		"0xffffffffffffffffffffffffffffffffffffffff", "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE",
		"1111111111111111111114oLvT2", "1BitcoinEaterAddressDontSendf59kuE", "1CounterpartyXXXXXXXXXXXXXXXUWLpVr",
		"T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
		"11111111111111111111111111111111", "1nc1nerator11111111111111111111111111111111",
		"rrrrrrrrrrrrrrrrrrrrrhoLvTp", "rrrrrrrrrrrrrrrrrrrrBZbvji", "rrrrrrrrrrrrrrrrrNAMEtxvNvQ",
		"rrrrrrrrrrrrrrrrrrrn5RM1rHd",
	}
	tokens = []string{
		// USDT, USDC, DAI, WETH and WBTC of Ethereum.
		"0xdAC17F958D2ee523a2206206994597C13D831ec7", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
		"0x6B175474E89094C44Da98b954EedeAC495271d0F", "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2",
		"0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599",
		// USDT and USDC of BNB Smart Chain.
		"0x55d398326f99059fF775485246999027B3197955", "0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d",
		// USDC, bridged USDC and USDT of Polygon.
		"0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174",
		"0xc2132D05D31c914a87C6611C10748AEb04B58e8F",
		// USDC and USDT of Arbitrum, of Optimism and of Avalanche; USDC of Base.
		"0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
		"0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85", "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58",
		"0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", "0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7",
		"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
		// USDT and USDC of TRON, and of Solana.
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8",
		"Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
	}
)

// lost has the reasons by the canonical form of an address.
var lost = func() map[string]string {
	m := make(map[string]string, len(noOwner)+len(tokens))
	for _, a := range noOwner {
		m[Canonical(a)] = "has no owner: what is sent there is lost"
	}
	for _, a := range tokens {
		m[Canonical(a)] = "is the contract of a token, not a wallet: what is sent there is lost"
	}
	return m
}()

// Lost returns why an address, in any spelling, must not receive money; "" for any other.
func Lost(text string) (why string) { return lost[Canonical(text)] }
