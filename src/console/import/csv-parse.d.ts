/** What the page uses of csv-parse, whose own types bring those of Node.js into the console (tsconfig.console.json). */
export function parse(
  text: string,
  options: {
    readonly bom: boolean;
    readonly delimiter: string;
    readonly relax_column_count: boolean;
    readonly relax_quotes: boolean;
  },
): string[][];
