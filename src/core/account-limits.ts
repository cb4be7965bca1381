/** Limits of users, passwords, tokens and sessions. A part of `LIMITS`. */

export const ACCOUNT_LIMITS = {
  passwordCharactersMin: 8,
  passwordCharactersMax: 256,
  credentials: 100,
  tokenLineage: 32,
  tokensPerUser: 1_000,
  passwordHashesAtOnce: 2,
  passwordHashesWaiting: 100,
  loginFailuresPerAccount: 10,
  loginFailuresPerAddress: 100,
  sessionsPerUser: 50,
  sessionAgentCharacters: 256,
} as const;
